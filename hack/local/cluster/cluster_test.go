// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

func newCluster(t *testing.T, name string) *Cluster {
	t.Helper()
	c, err := New(name, t.TempDir(), t.TempDir(), progress.New(io.Discard, false))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// put writes a file and creates its directory.
func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		name           string
		wantKubeconfig string // empty: refused
	}{
		"the default":       {"modelbox", "kubeconfig"},
		"another":           {"ci-2", "kubeconfig-ci-2"},
		"one letter":        {"a", "kubeconfig-a"},
		"forty letters":     {strings.Repeat("a", 40), "kubeconfig-" + strings.Repeat("a", 40)},
		"forty-one letters": {strings.Repeat("a", 41), ""},
		"empty":             {"", ""},
		"a path":            {"../x", ""},
		"upper case":        {"Box", ""},
		"a trailing dash":   {"box-", ""},
		"a leading dash":    {"-box", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := New(test.name, "/cache", "/root", progress.New(io.Discard, false))
			if test.wantKubeconfig == "" {
				if err == nil {
					t.Errorf("%q was accepted", test.name)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join("/root", "bin", test.wantKubeconfig); c.Kubeconfig != want {
				t.Errorf("kubeconfig at %s, want %s", c.Kubeconfig, want)
			}
			if want := filepath.Join("/cache", "kwok", "clusters", test.name); c.Dir() != want {
				t.Errorf("files in %s, want %s", c.Dir(), want)
			}
		})
	}
}

func TestDownWithoutACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "none")
	var said bytes.Buffer
	c.report = progress.New(&said, false)
	put(t, c.Kubeconfig, "stale")
	if err := c.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("cluster none does not exist\n", said.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(c.Kubeconfig); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the stale kubeconfig is still there: %v", err)
	}
}

func TestDownOfAnIncompleteCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "half")
	put(t, filepath.Join(c.Dir(), "kwok.yaml"), "{}")
	if err := c.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its files are still there: %v", err)
	}
}

func TestSettingsRender(t *testing.T) {
	t.Parallel()
	out, err := settings{AuditPolicy: "/tmp/a: b/audit.yaml", programs: `/home/me "and" you/bin`}.render()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Options struct{ BindAddress, KubeAuditPolicy, EtcdBinary, KwokControllerBinary string }
	}
	if err := yaml.Unmarshal(out, &got); err != nil {
		t.Fatalf("not YAML: %v\n%s", err, out)
	}
	if got.Options.BindAddress != "127.0.0.1" {
		t.Errorf("etcd would listen on %q, where every host of the network can write to it", got.Options.BindAddress)
	}
	// Each component has one port, and etcd has two.
	ports := map[string]bool{}
	for _, match := range regexp.MustCompile(`Port: ([0-9]+)`).FindAllStringSubmatch(string(out), -1) {
		ports[match[1]] = true
	}
	if want := len(components) + 1; len(ports) != want {
		t.Errorf("%d distinct ports, want %d", len(ports), want)
	}
	want := [3]string{"/tmp/a: b/audit.yaml", `/home/me "and" you/bin/etcd`, `/home/me "and" you/bin/kwok`}
	paths := [3]string{got.Options.KubeAuditPolicy, got.Options.EtcdBinary, got.Options.KwokControllerBinary}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestKwokctlEnv(t *testing.T) {
	t.Setenv("PATH", "/usr/bin")
	got := kwokctlEnv([]string{"HOME=/me", "KWOK_KUBE_AUTHORIZATION=false", "KWOK_WORKDIR=/elsewhere", "PATH=/usr/bin"}, "/home", "/programs")
	want := []string{"HOME=/me", "PATH=/usr/bin", "KWOK_WORKDIR=/home", "PATH=/programs:/usr/bin"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	output := `{"level":"INFO","msg":"Cluster is starting"}
{"level":"ERROR","msg":"Failed to setup config","err":"no space left on device"}
panic: out of memory
`
	want := "\n  Failed to setup config: no space left on device\n  panic: out of memory"
	if diff := cmp.Diff(want, warnings(output)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestCreator(t *testing.T) {
	t.Parallel()
	programs := t.TempDir()
	put(t, filepath.Join(programs, "kwokctl"), "x")
	tests := map[string]struct {
		link string // empty: none
		want string
	}{
		"a new cluster uses the current programs":           {"", "/current"},
		"an existing cluster keeps its own":                 {filepath.Join(programs, "etcd"), programs},
		"the current ones if its own do not exist any more": {"/nowhere/etcd", "/current"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, "a")
			bin := filepath.Join(c.Dir(), "bin")
			if err := os.MkdirAll(bin, 0o700); err != nil {
				t.Fatal(err)
			}
			if test.link != "" {
				if err := os.Symlink(test.link, filepath.Join(bin, "etcd")); err != nil {
					t.Fatal(err)
				}
			}
			if got := c.creator("/current"); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestRename(t *testing.T) {
	t.Parallel()
	from := func(change func(*clientcmdapi.Config)) *clientcmdapi.Config {
		config := clientcmdapi.NewConfig()
		config.Clusters["kwok-a"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
		config.AuthInfos["kwok-a"] = &clientcmdapi.AuthInfo{Token: "secret"}
		config.Contexts["kwok-a"] = &clientcmdapi.Context{Cluster: "kwok-a", AuthInfo: "kwok-a", Namespace: "x"}
		config.Contexts["other"] = &clientcmdapi.Context{}
		config.CurrentContext = "kwok-a"
		change(config)
		return config
	}
	got, err := rename(from(func(*clientcmdapi.Config) {}), "a")
	if err != nil {
		t.Fatal(err)
	}
	want := clientcmdapi.NewConfig()
	want.Clusters["a"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	want.AuthInfos["a"] = &clientcmdapi.AuthInfo{Token: "secret"}
	want.Contexts["a"] = &clientcmdapi.Context{Cluster: "a", AuthInfo: "a"}
	want.CurrentContext = "a"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kubeconfig (-want +got):\n%s", diff)
	}

	incomplete := map[string]func(*clientcmdapi.Config){
		"no context": func(c *clientcmdapi.Config) { c.CurrentContext = "gone" },
		"no cluster": func(c *clientcmdapi.Config) { delete(c.Clusters, "kwok-a") },
		"no user":    func(c *clientcmdapi.Config) { delete(c.AuthInfos, "kwok-a") },
	}
	for name, change := range incomplete {
		if _, err := rename(from(change), "a"); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestWriteKubeconfig(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	put(t, filepath.Join(c.Dir(), "pki", "ca.crt"), "the authority")
	config := clientcmdapi.NewConfig()
	config.Clusters["x"] = &clientcmdapi.Cluster{
		Server: "https://127.0.0.1:1", CertificateAuthority: filepath.Join(c.Dir(), "pki", "ca.crt"),
	}
	config.AuthInfos["x"] = &clientcmdapi.AuthInfo{Token: "secret"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "x", AuthInfo: "x"}
	config.CurrentContext = "x"
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(c.Dir(), "kubeconfig.yaml"), string(content))
	// An existing file may be readable by all users; the new one must not be.
	put(t, c.Kubeconfig, "old")
	if err := os.Chmod(c.Kubeconfig, 0o644); err != nil {
		t.Fatal(err)
	}

	if err := c.writeKubeconfig(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want -rw-------", info.Mode())
	}
	loaded, err := c.Config()
	if err != nil {
		t.Fatal(err)
	}
	if string(loaded.CAData) != "the authority" || loaded.CAFile != "" {
		t.Errorf("it depends on %q and holds %q", loaded.CAFile, loaded.CAData)
	}
	left, err := os.ReadDir(filepath.Dir(c.Kubeconfig))
	if err != nil || len(left) != 1 {
		t.Errorf("there are more files: %v, %v", left, err)
	}
}

func TestNode(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range nodeCount {
		n := node(i + 1)
		if n.Labels[corev1.LabelHostname] != *n.Name {
			t.Errorf("%s has the hostname %s", *n.Name, n.Labels[corev1.LabelHostname])
		}
		seen[*n.Name] = true
		seen[*n.Spec.PodCIDR] = true
	}
	if len(seen) != 2*nodeCount {
		t.Errorf("nodes share a name or addresses: %v", seen)
	}
}

func TestCountReady(t *testing.T) {
	t.Parallel()
	with := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.Node {
		return corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: kind, Status: status}}}}
	}
	nodes := []corev1.Node{
		with(corev1.NodeReady, corev1.ConditionTrue),
		with(corev1.NodeReady, corev1.ConditionUnknown),
		with(corev1.NodeMemoryPressure, corev1.ConditionTrue),
		{},
		with(corev1.NodeReady, corev1.ConditionTrue),
	}
	if got := countReady(nodes); got != 2 {
		t.Errorf("got %d, want 2", got)
	}
}

func TestCountRenewed(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) coordinationv1.Lease {
		return coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(since.Add(d)))}}
	}
	leases := []coordinationv1.Lease{at(-time.Second), at(0), at(time.Second), {}}
	if got := countRenewed(leases, since); got != 2 {
		t.Errorf("got %d, want 2", got)
	}
	if got := countRenewed(leases, time.Time{}); got != 3 {
		t.Errorf("for a cluster that was already running: got %d, want 3", got)
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	calls := 0
	err := retry(t.Context(), func(context.Context) error {
		if calls++; calls < 3 {
			return broken
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("got %v after %d calls, want success at the third", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = retry(ctx, func(context.Context) error { cancel(); return broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the last error", err)
	}
}
