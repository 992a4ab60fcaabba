// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration_test has the tests that need a real API server with the CRDs and the policies,
// and neither the webhook nor the controller: the policies must also be correct while these are
// unavailable. One control plane is for all of them: the decisions of the policies (config/policies)
// are compared with their documentation, the commands of modelbox read and change objects, and the
// generated clients (api/client) are used as in their examples.
package integration_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) {
	flag.Parse() // A wrong flag ends the process, and must not leave a control plane behind.
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	log.SetLogger(klog.Logger{}) // Otherwise controller-runtime prints that it has no logger.
	if env, err = testenv.Start(testenv.Options{Policies: true}); err != nil {
		return 1, err
	}
	defer func() {
		if stopped := env.Stop(); err == nil {
			err = stopped
		}
	}()
	env.Config.QPS = -1
	env.Config.WarningHandler = rest.NoWarnings{}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := prepare(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// prepare creates the roles of a cluster, and waits until the policies are in effect.
func prepare(ctx context.Context) error {
	if _, err := env.Kubectl("", "apply", "-k", testenv.Root()+"/config/aggregated-roles"); err != nil {
		return err
	}
	if err := aggregate(ctx); err != nil {
		return fmt.Errorf("aggregating roles: %w", err)
	}
	if err := newNamespace(ctx, "probe", nil); err != nil {
		return err
	}
	for user, probe := range probes {
		if err := probe(ctx, user); err != nil {
			return fmt.Errorf("waiting for the policy that refuses %s: %w", user, err)
		}
	}
	return nil
}

// probes create users, and wait until a request of theirs is refused by a policy.
var probes = map[string]func(ctx context.Context, user string) error{
	"probe-kinds": func(ctx context.Context, user string) error {
		return awaitOutcome(ctx, user, spec{"image": "a:1"}, byRequester, "model.github.com * *")
	},
	"probe-delegated": func(ctx context.Context, user string) error {
		return awaitOutcome(ctx, user, spec{"image": "a:1", "serviceType": "LoadBalancer"}, byDelegated, "model.github.com * *", virtualGroup+" use modelboxes")
	},
}

func awaitOutcome(ctx context.Context, user string, box spec, want outcome, rules ...string) error {
	var role []rbacv1.PolicyRule
	for _, rule := range rules {
		role = append(role, ruleOf(rule))
	}
	if err := bind(ctx, "probe", user, role); err != nil {
		return err
	}
	c, err := as(user)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := modelBox.in(c, "probe").Create(ctx, modelBox.object("probe", box), metav1.CreateOptions{DryRun: dryRun})
		return outcomeOf(err) == want, nil
	})
}

func newNamespace(ctx context.Context, name string, annotations map[string]string) error {
	return env.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}})
}

// count makes the names of namespaces and users unique, so that the tests can run again.
var count atomic.Int32

func unique(name string) string { return fmt.Sprintf("%s-%d", name, count.Add(1)) }

// since skips a test on a version of Kubernetes before 1.minor.
func since(t *testing.T, minor int, what string) {
	t.Helper()
	reason, err := env.Lacks(minor, what)
	if err != nil {
		t.Fatal(err)
	}
	if reason != "" {
		t.Skip(reason)
	}
}
