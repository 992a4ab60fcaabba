// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

// programs returns the real control plane's directory. "make test" sets the
// variable to what "go run ./hack/local binaries" prints.
func programs(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if _, err := os.Stat(filepath.Join(dir, "kwokctl")); dir == "" || err != nil {
		t.Skip("KUBEBUILDER_ASSETS is not what `go run ./hack/local binaries` prints")
	}
	return dir
}

// realCluster returns a cluster that is removed at the end of the test. All clusters of
// a test share cache.
func realCluster(t *testing.T, name, cache string) *Cluster {
	t.Helper()
	c, err := New(name, cache, t.TempDir(), progress.New(io.Discard, false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Down(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if live, err := c.processes(context.WithoutCancel(t.Context())); err != nil || len(live) > 0 {
			t.Errorf("still running: %v, %v", live, err)
		}
	})
	return c
}

func mustUp(t *testing.T, c *Cluster) kubernetes.Interface {
	t.Helper()
	if err := c.Up(t.Context(), programs(t)); err != nil {
		t.Fatal(err)
	}
	config, err := c.Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// rollOut creates a Deployment and waits until all replicas are available.
func rollOut(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas:        new(int32(4)),
			MinReadySeconds: 1,
			Selector:        &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/any:1"}}},
			},
		},
	}
	deployments := client.AppsV1().Deployments(metav1.NamespaceDefault)
	if _, err := deployments.Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := retry(ctx, func(ctx context.Context) error {
		now, err := deployments.Get(ctx, name, metav1.GetOptions{})
		if err == nil && now.Status.AvailableReplicas < 4 {
			err = fmt.Errorf("%d of 4 replicas are available", now.Status.AvailableReplicas)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
}

func TestRealClusterIsRestartedWithItsData(t *testing.T) {
	t.Parallel()
	programs(t)
	c := realCluster(t, "life", t.TempDir())
	client := mustUp(t, c)
	rollOut(t, client, "first")

	before, err := c.processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustUp(t, c)
	after, err := c.processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, component := range components {
		if before[component] == 0 || before[component] != after[component] {
			t.Errorf("%s was restarted although it was running: %d, then %d", component, before[component], after[component])
		}
		kill(t, after[component])
	}
	client = mustUp(t, c)
	if _, err := client.AppsV1().Deployments(metav1.NamespaceDefault).Get(t.Context(), "first", metav1.GetOptions{}); err != nil {
		t.Errorf("its data is lost: %v", err)
	}
	rollOut(t, client, "second")

	log, err := os.ReadFile(c.AuditLog())
	if err != nil || !strings.Contains(string(log), `"requestURI":"/apis/apps/v1/namespaces/default/deployments"`) {
		t.Errorf("a request is missing in the audit log (%d bytes, %v)", len(log), err)
	}
	if err := c.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{c.Dir(), c.Kubeconfig} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
}

func TestRealClustersRunSideBySide(t *testing.T) {
	t.Parallel()
	programs(t)
	cache := t.TempDir()
	clusters := []*Cluster{realCluster(t, "left", cache), realCluster(t, "right", cache)}
	var starting sync.WaitGroup
	for _, c := range clusters {
		starting.Go(func() {
			if err := c.Up(t.Context(), programs(t)); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	if t.Failed() {
		return
	}
	hosts := map[string]bool{}
	for _, c := range clusters {
		config, err := c.Config()
		if err != nil {
			t.Fatal(err)
		}
		hosts[config.Host] = true
	}
	if len(hosts) != 2 {
		t.Errorf("both have the address %v", hosts)
	}
}

// withBrokenEtcd returns a directory of programs in which etcd ends immediately.
func withBrokenEtcd(t *testing.T) string {
	t.Helper()
	whole, broken := programs(t), t.TempDir()
	entries, err := os.ReadDir(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() == "etcd" {
			continue
		}
		if err := os.Symlink(filepath.Join(whole, entry.Name()), filepath.Join(broken, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\nif [ \"$1\" = --version ]; then echo etcd Version: 3.7.0; exit; fi\necho address already in use\nexit 1\n"
	if err := os.WriteFile(filepath.Join(broken, "etcd"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return broken
}

func TestRealClusterThatCannotStart(t *testing.T) {
	t.Parallel()
	programs(t)
	c := realCluster(t, "broken", t.TempDir())
	err := c.Up(t.Context(), withBrokenEtcd(t))
	if err == nil {
		t.Fatal("it started")
	}
	for _, want := range []string{"etcd ended unexpectedly", "address already in use", "CLUSTER=broken go run ./hack/local down"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, without %q", err, want)
		}
	}
	if live, err := c.processes(t.Context()); err != nil || len(live) > 0 {
		t.Errorf("it left %v running, %v", live, err)
	}
	if _, err := os.Stat(c.Log("etcd")); err != nil {
		t.Errorf("the log was deleted: %v", err)
	}
}

func TestRealClusterThatIsInterruptedIsRemoved(t *testing.T) {
	t.Parallel()
	programs(t)
	c := realCluster(t, "interrupted", t.TempDir())
	interrupted := errors.New("interrupted")
	ctx, interrupt := context.WithCancelCause(t.Context())
	go func() {
		// The most difficult moment is directly after the start of the API server.
		_ = retry(ctx, func(ctx context.Context) error {
			live, err := c.processes(ctx)
			if err == nil && live["kube-apiserver"] == 0 {
				err = errors.New("not yet")
			}
			return err
		})
		interrupt(interrupted)
	}()
	if err := c.Up(ctx, programs(t)); !errors.Is(err, interrupted) {
		t.Errorf("got %v, want %v", err, interrupted)
	}
	if live, err := c.processes(t.Context()); err != nil || len(live) > 0 {
		t.Errorf("it left %v running, %v", live, err)
	}
	if _, err := os.Stat(c.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its files are still there: %v", err)
	}
}
