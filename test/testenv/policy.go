// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ServiceAccount returns the name of the user that a service account is.
func ServiceAccount(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// BindControllers installs config/policies/controller.yaml, the policy that bounds what the
// controller may write, for every user whose name begins with prefix, and returns when the
// API server enforces it. One of these users is needed for that; its request is denied. The
// names of the policy and its binding get a suffix. What a component of config/ changes in the
// policy can be changed here too.
func (e *Env) BindControllers(ctx context.Context, suffix, prefix string, one *rest.Config,
	changes ...func(*admissionregistrationv1.ValidatingAdmissionPolicy)) error {
	policy, binding, err := controllerPolicy()
	if err != nil {
		return err
	}
	for _, change := range changes {
		change(policy)
	}
	policy.Spec.MatchConditions[0].Expression = fmt.Sprintf("request.userInfo.username.startsWith('%s')", prefix)
	policy.Name += suffix
	binding.Name, binding.Spec.PolicyName = policy.Name, policy.Name
	for _, obj := range []client.Object{policy, binding} {
		if err := e.Client.Create(ctx, obj); err != nil {
			return fmt.Errorf("installing the controller's policy: %w", err)
		}
	}
	return e.Enforced(ctx, one)
}

// Enforced waits until a user may not create a ConfigMap, because of a policy.
func (e *Env) Enforced(ctx context.Context, user *rest.Config) error {
	c, err := client.New(user, client.Options{Scheme: e.Client.Scheme()})
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "policy-probe"}}
		err := c.Create(ctx, probe, client.DryRunAll)
		return apierrors.IsForbidden(err), client.IgnoreAlreadyExists(ignoreForbidden(err))
	})
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// controllerPolicy reads the policy of the controller and its binding.
func controllerPolicy() (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
	file, err := os.Open(filepath.Join(Root(), "config", "policies", "controller.yaml"))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }()
	policy, binding := &admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	documents := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for _, into := range []any{policy, binding} {
		if err := documents.Decode(into); err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", file.Name(), err)
		}
	}
	return policy, binding, nil
}
