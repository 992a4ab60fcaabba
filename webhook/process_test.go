// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/test/certificates"
)

// asProcess makes this test binary the webhook process.
const asProcess = "WEBHOOK_TEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const unreachable = `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "u", "user": {}}]}`

// TestStartsWithoutTheAPIServer: the process needs no kubeconfig, and no API server that
// can be reached. All that is missing is the warning about a UnitedDeployment's target.
func TestStartsWithoutTheAPIServer(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	kubeconfig := filepath.Join(home, "unreachable")
	if err := os.WriteFile(kubeconfig, []byte(unreachable), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string][]string{
		"no kubeconfig":              nil,
		"an API server that is away": {"KUBECONFIG=" + kubeconfig},
		"a pod without a token":      {"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProcess(t, append(env, asProcess+"=1", "HOME="+home))
			p.eventually("it is ready", func() bool { return p.get("http://"+p.probes+"/readyz") == "ok" })
			if got := p.get("http://" + p.metrics + "/metrics"); !strings.Contains(got, "modelbox_admission_requests_in_flight") {
				t.Errorf("metrics: %s", got)
			}
			for path, want := range map[string]string{
				"/validate-extension-k8s-io-v1-uniteddeployment": `"response":{"uid":"u","allowed":true}`,
				"/mutate-extension-k8s-io-v1-uniteddeployment":   `"response":{"uid":"u","allowed":true}`,
			} {
				r, err := p.client.Post("https://"+p.webhooks+path, "application/json", strings.NewReader(unitedDeployment))
				if err != nil {
					t.Fatal(err)
				}
				answer, _ := io.ReadAll(r.Body)
				r.Body.Close()
				if !strings.Contains(string(answer), want) {
					t.Errorf("%s: %s, want %s", path, answer, want)
				}
			}
			p.end()
		})
	}
}

const unitedDeployment = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "operation": "CREATE",
"kind": {"group": "extension.k8s.io", "version": "v1", "kind": "UnitedDeployment"}, "name": "ud", "namespace": "default",
"object": {"metadata": {"name": "ud"}, "spec": {"deploymentName": "web", "replicas": 1}}}}`

// process is a webhook process on free ports.
type process struct {
	*testing.T
	*exec.Cmd
	output                    bytes.Buffer
	webhooks, metrics, probes string
	client                    *http.Client
}

func startProcess(t *testing.T, env []string) *process {
	t.Helper()
	dir := t.TempDir()
	cert, key := certificates.New("webhook", 1)
	for file, data := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := &process{T: t, webhooks: freeAddress(t), metrics: freeAddress(t), probes: freeAddress(t)}
	p.client = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	p.Cmd = exec.Command(os.Args[0], "--cert-dir="+dir, "--webhook-bind-address="+p.webhooks, "--metrics-bind-address="+p.metrics,
		"--health-probe-bind-address="+p.probes, "--drain=0s", "--linger=0s")
	p.Env, p.Stdout, p.Stderr = env, &p.output, &p.output
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// get returns the body of an answer, or why there is none.
func (p *process) get(url string) string {
	r, err := p.client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	return string(body)
}

func (p *process) eventually(what string, done func() bool) {
	p.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = p.Process.Kill()
			_ = p.Wait()
			p.Fatalf("not in time: %s: %s", what, &p.output)
		}
	}
}

// end stops the process as a kubelet does.
func (p *process) end() {
	p.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		p.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		p.Error(fmt.Errorf("%w: %s", err, &p.output))
	}
}
