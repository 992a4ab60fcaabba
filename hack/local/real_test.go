// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/hack/local/cluster"
	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
	"github.com/modelbox-operator/modelbox-operator/hack/local/install"
	"github.com/modelbox-operator/modelbox-operator/hack/local/process"
	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// output is what a run prints; it is safe for concurrent use.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// firstLine returns the first line.
func (o *output) firstLine() string {
	line, _, _ := strings.Cut(o.String(), "\n")
	return line
}

// inClone returns the environment of a command in this clone, without a terminal, and what it
// prints. The variables that select a cluster are not set.
func inClone(t *testing.T) (local, *output) {
	t.Helper()
	for _, name := range []string{localEnv, contextEnv, cluster.NameEnv, "ENABLE_WEBHOOKS", "WEBHOOK_ARGS", "CONTROLLER_ARGS"} {
		t.Setenv(name, "")
	}
	out := &output{}
	report := progress.New(out, false)
	// No test starts this cluster: its files would be in a folder of the test.
	c, err := cluster.New("test-of-run", t.TempDir(), t.TempDir(), report)
	if err != nil {
		t.Fatal(err)
	}
	return local{root: testenv.Root(), cluster: c, report: report, out: io.Discard}, out
}

// current is a control plane with the CRDs that is the cluster of the current context.
type current struct {
	*testenv.Env
	t    *testing.T
	file string
}

func newCurrent(t *testing.T) *current {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS is not what `go run ./hack/local binaries` prints")
	}
	env, err := testenv.Start(testenv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	c := &current{Env: env, t: t, file: filepath.Join(t.TempDir(), "kubeconfig")}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://" + strings.TrimPrefix(env.Config.Host, "https://"), CertificateAuthorityData: env.Config.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: env.Config.CertData, ClientKeyData: env.Config.KeyData}
	config.Clusters["gone"] = &clientcmdapi.Cluster{Server: "https://" + closedPort(t)}
	config.Clusters["remote"] = &clientcmdapi.Cluster{Server: "https://192.0.2.1:6443"} // RFC 5737: no host has it.
	for name, of := range map[string]string{"dev": "c", "by-hand": "c", "gone": "gone", "remote": "remote"} {
		config.Contexts[name] = &clientcmdapi.Context{Cluster: of, AuthInfo: "u", Namespace: "team-" + name}
	}
	config.CurrentContext = "dev"
	if err := clientcmd.WriteToFile(*config, c.file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"team-dev", "team-by-hand"} {
		if err := env.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", c.file)
	return c
}

func closedPort(t *testing.T) string {
	t.Helper()
	addresses, err := freeport.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	return addresses[0]
}

// use makes another context the current one.
func (c *current) use(context string) {
	c.t.Helper()
	config, err := clientcmd.LoadFromFile(c.file)
	if err != nil {
		c.t.Fatal(err)
	}
	config.CurrentContext = context
	if err := clientcmd.WriteToFile(*config, c.file); err != nil {
		c.t.Fatal(err)
	}
}

// installed returns the names of all webhook configurations and policies in the cluster.
func (c *current) installed() (names []string) {
	c.t.Helper()
	lists := []client.ObjectList{
		&admissionregistrationv1.MutatingWebhookConfigurationList{}, &admissionregistrationv1.ValidatingWebhookConfigurationList{},
		&admissionregistrationv1.ValidatingAdmissionPolicyList{}, &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{},
	}
	for _, list := range lists {
		if err := c.Client.List(c.t.Context(), list); err != nil {
			c.t.Fatal(err)
		}
		err := meta.EachListItem(list, func(object runtime.Object) error {
			names = append(names, object.(client.Object).GetName())
			return nil
		})
		if err != nil {
			c.t.Fatal(err)
		}
	}
	return slices.Compact(names)
}

func (c *current) expectNothingInstalled(t *testing.T) {
	t.Helper()
	if left := c.installed(); len(left) > 0 {
		t.Errorf("left in the cluster: %q", left)
	}
}

// await polls until something succeeds.
func await(t *testing.T, what string, try func() error) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.Now().Add(10 * time.Minute) // It may compile both processes.
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		<-ticker.C
	}
}

// running is a run in the foreground.
type running struct {
	*output
	end  context.CancelFunc
	done chan error
}

func startRun(t *testing.T) *running {
	t.Helper()
	l, out := inClone(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &running{output: out, end: cancel, done: make(chan error, 1)}
	go func() { r.done <- run(ctx, l) }()
	t.Cleanup(cancel)
	await(t, "the start of the run", func() error {
		select {
		case err := <-r.done:
			t.Fatalf("it ended with %v, after\n%s", err, out)
		default:
		}
		if !strings.Contains(out.String(), "Ctrl-C stops it; the objects and their children stay.") {
			return fmt.Errorf("it has printed only\n%s", out)
		}
		return nil
	})
	return r
}

func TestRealRunOnTheCurrentCluster(t *testing.T) {
	c := newCurrent(t)
	t.Run("reconciles there, and removes what it installed", c.reconciles)
	t.Run("its command removes what a killed one has left", c.removesAfterAKill)
	t.Run("a webhook that the API server does not reach", c.unreachable)
	t.Run("a deployed operator", c.deployed)
	t.Run("the controller by hand", c.byHand)
	t.Run("the first line", c.firstLine) // Deletes a CRD, which the API server does not serve for a moment.
}

func (c *current) reconciles(t *testing.T) {
	l, _ := inClone(t)
	m, err := install.Load(t.Context(), "", filepath.Join(l.root, "config", "webhook", "generated"))
	if err != nil {
		t.Fatal(err)
	}
	// What a killed run has left refuses every object, until the next run.
	if err := install.NewRun(c.Client).Webhooks(t.Context(), m, install.Endpoint{URL: "https://" + closedPort(t)}); err != nil {
		t.Fatal(err)
	}
	r := startRun(t)
	want := fmt.Sprintf("using the cluster of context %q (https://%s) in %s", "dev", strings.TrimPrefix(c.Config.Host, "https://"), c.file)
	if got := r.firstLine(); got != want {
		t.Errorf("the first line is\n%s\nwant\n%s", got, want)
	}
	if !strings.Contains(r.String(), "removed what an earlier run has left: MutatingWebhookConfiguration modelbox-webhook-run") {
		t.Errorf("it does not say what it has removed:\n%s", r)
	}
	box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: "team-dev", Name: "box"}, Spec: modelv1.ModelBoxSpec{Image: "a:1"}}
	if err := c.Client.Create(t.Context(), box); err != nil || box.Spec.DefaultProbes == "" {
		t.Errorf("the webhook was not called: %+v, %v", box.Spec, err)
	}
	await(t, "the Deployment", func() error {
		return c.Client.Get(t.Context(), client.ObjectKeyFromObject(box), &appsv1.Deployment{})
	})
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "team-dev", Name: "modelbox-controller"}, &coordinationv1.Lease{}); err != nil {
		t.Errorf("the lease is not in the namespace of the context: %v", err)
	}
	if got, want := c.installed(), []string{"modelbox-webhook-run", "modelbox-delegated-run", "modelbox-requester-run", "modelbox-delegated-run", "modelbox-requester-run"}; !slices.Equal(got, want) {
		t.Errorf("it has installed %q, want %q", got, want)
	}
	r.end()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
	c.expectNothingInstalled(t)
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(box), box); err != nil {
		t.Errorf("the object did not stay: %v", err)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: install.Namespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("it has created the namespace %s: %v", install.Namespace, err)
	}
}

func (c *current) removesAfterAKill(t *testing.T) {
	r := startRun(t)
	printed := regexp.MustCompile(`(?m)^  (kubectl .* delete .*)$`).FindStringSubmatch(r.String())
	if printed == nil {
		t.Fatalf("it prints no command:\n%s", r)
	}
	// The command of another terminal, with another current context.
	kill := func() {
		command := exec.Command("/bin/sh", "-c", printed[1])
		command.Env = append(os.Environ(), "PATH="+os.Getenv("KUBEBUILDER_ASSETS"), "KUBECONFIG=/nowhere")
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", printed[1], err, out)
		}
	}
	kill()
	c.expectNothingInstalled(t)
	kill() // Again, when there is nothing left.
	r.end()
	if err := <-r.done; err != nil {
		t.Errorf("a run whose objects were removed by the command ends with %v", err)
	}
}

func (c *current) unreachable(t *testing.T) {
	l, out := inClone(t)
	t.Setenv("WEBHOOK_ARGS", "--webhook-bind-address="+closedPort(t)) // Not where the configuration points.
	err := run(t.Context(), l)
	if err == nil {
		t.Fatalf("it ran:\n%s", out)
	}
	for _, want := range []string{"connection refused", "make run ENABLE_WEBHOOKS=false", "kind or minikube", `context "dev"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in the error: %v", want, err)
		}
	}
	c.expectNothingInstalled(t)
}

func (c *current) deployed(t *testing.T) {
	deployed := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "modelbox-webhook"}}
	if err := c.Client.Create(t.Context(), deployed); err != nil {
		t.Fatal(err)
	}
	for _, webhooks := range []string{"true", "false"} {
		l, out := inClone(t)
		t.Setenv("ENABLE_WEBHOOKS", webhooks)
		err := run(t.Context(), l)
		if err == nil || !strings.Contains(err.Error(), "ValidatingWebhookConfiguration modelbox-webhook") || !strings.Contains(err.Error(), "make undeploy") {
			t.Errorf("ENABLE_WEBHOOKS=%s: got %v, want an error that names make undeploy, after\n%s", webhooks, err, out)
		}
		if got := c.installed(); !slices.Equal(got, []string{"modelbox-webhook"}) {
			t.Errorf("the cluster has %q", got)
		}
	}
	if err := c.Client.Delete(t.Context(), deployed); err != nil {
		t.Fatal(err)
	}
}

// firstLine tries what the environment, the kubeconfig and the answer select.
func (c *current) firstLine(t *testing.T) {
	defer c.use("dev")
	yes := func(context.Context, string) (bool, error) { return true, nil }
	no := func(context.Context, string) (bool, error) { return false, nil }
	for name, test := range map[string]struct {
		context string // The current one.
		env     map[string]string
		ask     func(context.Context, string) (bool, error)
		want    string // A regular expression for the first line, or for the error.
		wantErr bool
	}{
		"the current cluster":         {"dev", nil, nil, `^using the cluster of context "dev" `, false},
		"a named context":             {"gone", map[string]string{contextEnv: "by-hand"}, nil, `^using the cluster of context "by-hand" `, false},
		"LOCAL=1":                     {"dev", map[string]string{localEnv: "1"}, nil, `^using the local cluster test-of-run, in .*: LOCAL=1 selects it$`, false},
		"LOCAL=false":                 {"dev", map[string]string{localEnv: "false"}, nil, `^using the cluster of context "dev" `, false},
		"LOCAL=maybe":                 {"dev", map[string]string{localEnv: "maybe"}, nil, `LOCAL is "maybe": set it to true or false`, true},
		"CLUSTER=mine":                {"dev", map[string]string{cluster.NameEnv: "mine"}, nil, `^using the local cluster .*: CLUSTER=mine selects it$`, false},
		"both":                        {"dev", map[string]string{localEnv: "1", contextEnv: "dev"}, nil, `set one of them`, true},
		"no kubeconfig":               {"dev", map[string]string{"KUBECONFIG": "/nowhere/k"}, nil, `^using the local cluster .*: no kubeconfig with a current context is at /nowhere/k$`, false},
		"no answer":                   {"gone", nil, nil, `^using the local cluster .*: the cluster of context "gone" .* cannot be used: .*connection refused`, false},
		"no answer, named":            {"dev", map[string]string{contextEnv: "gone"}, nil, `context "gone" .* cannot be used: .*connection refused`, true},
		"not this host, no terminal":  {"remote", nil, nil, `context "remote" .* is not on this host: CONTEXT=remote permits its use, and LOCAL=1 `, true},
		"not this host, declined":     {"remote", nil, no, `^using the local cluster .*: the cluster of context "remote" .* was declined$`, false},
		"not this host, and asked on": {"remote", nil, func(_ context.Context, q string) (bool, error) { return false, fmt.Errorf("asked: %s", q) }, `asked: Use the cluster of context "remote" \(https://192.0.2.1:6443\) in .*, which is not on this host\?`, true},
		"this host needs no answer":   {"dev", nil, yes, `^using the cluster of context "dev" `, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, out := inClone(t)
			l.ask = test.ask
			c.use(test.context)
			for key, value := range test.env {
				t.Setenv(key, value)
			}
			_, err := l.choose(t.Context())
			got := out.firstLine()
			if test.wantErr && err != nil {
				got = err.Error()
			}
			if (err != nil) != test.wantErr || !regexp.MustCompile(test.want).MatchString(got) {
				t.Errorf("got %q, %v, want %s", out, err, test.want)
			}
		})
	}

	t.Run("without the CRDs, or with others", func(t *testing.T) {
		c.use("dev")
		l, out := inClone(t)
		if _, err := c.Kubectl("", "patch", "crd", "modelboxes.model.github.com", "--type=json", "-p",
			`[{"op": "add", "path": "/spec/names/categories", "value": ["other"]}]`); err != nil {
			t.Fatal(err)
		}
		if _, err := l.choose(t.Context()); err != nil || !strings.Contains(out.String(), "warning: in this cluster, the CRDs modelboxes.model.github.com differ") {
			t.Errorf("got %v, and no warning in\n%s", err, out)
		}
		if _, err := c.Kubectl("", "delete", "crd", "erus.mtsre.meitu.com"); err != nil {
			t.Fatal(err)
		}
		l, out = inClone(t)
		if _, err := l.choose(t.Context()); err != nil || !strings.Contains(out.firstLine(), "does not have the CRDs erus.mtsre.meitu.com: 'make install'") {
			t.Errorf("got %v, and\n%s", err, out)
		}
		t.Setenv(contextEnv, "dev")
		if _, err := l.choose(t.Context()); err == nil || !strings.Contains(err.Error(), "does not have the CRDs erus.mtsre.meitu.com") {
			t.Errorf("a named context without the CRDs: got %v", err)
		}
		if _, err := c.Kubectl("", "apply", "-k", filepath.Join(l.root, "config", "crd")); err != nil {
			t.Fatal(err)
		}
	})
}

// byHand starts the binary that the runs have built, as docs/operations.md shows.
func (c *current) byHand(t *testing.T) {
	p, err := process.Start(process.Spec{
		Name: "controller", Path: filepath.Join(testenv.Root(), "bin", "controller"), Out: process.NewOutput(io.Discard, false),
		Args: []string{"--kubeconfig", c.file, "--context", "by-hand", "--metrics-bind-address=0", "--health-probe-bind-address=0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	}()
	await(t, "a lease in the namespace of the context", func() error {
		return c.Client.Get(t.Context(), client.ObjectKey{Namespace: "team-by-hand", Name: "modelbox-controller"}, &coordinationv1.Lease{})
	})
}
