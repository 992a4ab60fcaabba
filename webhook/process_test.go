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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
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

// kubeconfig has the address of an API server.
const kubeconfig = `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": "http://%s"}}], "users": [{"name": "u", "user": {}}]}`

// TestSendsNoRequestToTheAPIServer: the process needs no API server, and does not connect to
// one whose address it could find. A review, which anyone can send, must not make it read
// the cluster.
func TestSendsNoRequestToTheAPIServer(t *testing.T) {
	t.Parallel()
	home, apiServer := t.TempDir(), &countingListener{}
	apiServer.listen(t)
	host, port, _ := net.SplitHostPort(apiServer.Addr().String())
	config := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(config, fmt.Appendf(nil, kubeconfig, apiServer.Addr()), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string][]string{
		"no kubeconfig": nil,
		"a kubeconfig":  {"KUBECONFIG=" + config},
		"a pod":         {"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProcess(t, append(env, asProcess+"=1", "HOME="+home))
			p.eventually("it is ready", func() bool { return p.get("http://"+p.probes+"/readyz") == "ok" })
			if got := p.get("http://" + p.metrics + "/metrics"); !strings.Contains(got, "controller_runtime_webhook_requests_in_flight") {
				t.Errorf("metrics: %s", got)
			}
			for path, want := range map[string]string{
				"/validate-extension-k8s-io-v1-uniteddeployment": `"response":{"uid":"u","allowed":true`,
				"/mutate-extension-k8s-io-v1-uniteddeployment":   `"response":{"uid":"u","allowed":true`,
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
			if n := apiServer.connections.Load(); n > 0 {
				t.Errorf("%d connections to the API server", n)
			}
		})
	}
}

// countingListener counts the connections that it accepts, and closes them.
type countingListener struct {
	net.Listener
	connections atomic.Int64
}

func (l *countingListener) listen(t *testing.T) {
	t.Helper()
	var err error
	if l.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			l.connections.Add(1)
			_ = conn.Close()
		}
	}()
}

// TestHasNoFlagForAKubeconfig: this package of controller-runtime has the flag, and reads the
// service account's token.
func TestHasNoFlagForAKubeconfig(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "sigs.k8s.io/controller-runtime/pkg/client/config\n") {
		t.Error("the process links controller-runtime/pkg/client/config")
	}
}

// unitedDeploymentPath is the path of a webhook that answers unitedDeployment.
const unitedDeploymentPath = "/mutate-extension-k8s-io-v1-uniteddeployment"

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

// certDir returns a directory with the certificate of a webhook.
func certDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cert, key := certificates.New("webhook", 1)
	for file, data := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func startProcess(t *testing.T, env []string, flags ...string) *process {
	t.Helper()
	dir := certDir(t)
	addresses, err := freeport.Addresses(3)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{T: t, webhooks: addresses[0], metrics: addresses[1], probes: addresses[2]}
	p.client = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	p.Cmd = exec.Command(os.Args[0], append([]string{"--cert-dir=" + dir, "--webhook-bind-address=" + p.webhooks, "--metrics-bind-address=" + p.metrics,
		"--health-probe-bind-address=" + p.probes, "--shutdown-delay=0s"}, flags...)...)
	p.Env, p.Stdout, p.Stderr = env, &p.output, &p.output
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// startReady starts a process and waits until it is ready.
func startReady(t *testing.T, env []string, flags ...string) *process {
	t.Helper()
	p := startProcess(t, append(env, asProcess+"=1"), flags...)
	p.eventually("it is ready", func() bool { return p.get("http://"+p.probes+"/readyz") == "ok" })
	return p
}

// send sends a review of a UnitedDeployment, with the header traceparent if it is not empty.
func (p *process) send(traceparent string) *http.Response {
	p.Helper()
	r, err := http.NewRequest(http.MethodPost, "https://"+p.webhooks+unitedDeploymentPath, strings.NewReader(unitedDeployment))
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if traceparent != "" {
		r.Header.Set("traceparent", traceparent)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if answer.Body.Close(); err != nil || !strings.Contains(string(body), `"allowed":true`) {
		p.Fatalf("answered %s %s (%v)", answer.Status, body, err)
	}
	return answer
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

// TestMetricsByTLS: /metrics is served by TLS, and only to clients with a certificate.
func TestMetricsByTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := certificates.New("metrics", 1)
	ca, clientCert, clientKey := certificates.NewClient("prometheus")
	for file, data := range map[string][]byte{"m.crt": cert, "m.key": key, "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := startProcess(t, []string{asProcess + "=1"}, "--metrics-secure", "--metrics-cert-path="+dir, "--metrics-cert-name=m.crt",
		"--metrics-cert-key=m.key", "--metrics-client-ca="+filepath.Join(dir, "ca.crt"))
	p.eventually("it is ready", func() bool { return p.get("http://"+p.probes+"/readyz") == "ok" })
	if got := p.get("https://" + p.metrics + "/metrics"); !strings.Contains(got, "tls: ") {
		t.Errorf("without a certificate: %s", got)
	}
	if got := p.get("http://" + p.metrics + "/metrics"); strings.Contains(got, "controller_runtime_") {
		t.Error("the metrics are served without TLS")
	}
	pair, err := tls.X509KeyPair(clientCert, clientKey)
	if err != nil {
		t.Fatal(err)
	}
	p.client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair}
	if got := p.get("https://" + p.metrics + "/metrics"); !strings.Contains(got, "controller_runtime_webhook_requests_total") {
		t.Errorf("with a certificate: %s", got)
	}
	p.end()
}

// TestFlagsWithoutEffect: a flag that would have no effect is an error. It is the only one: a process without a certificate
// ends as well, perhaps before it listens to an address.
func TestFlagsWithoutEffect(t *testing.T) {
	t.Parallel()
	dir := certDir(t)
	for flag, want := range map[string]string{
		"--metrics-cert-path=/nowhere":             "--metrics-secure",
		"--metrics-client-ca=ca.crt":               "--metrics-secure",
		"--client-ca-allowed-names=kube-apiserver": "--client-ca",
		"--client-ca=/nowhere/ca.crt":              "--client-ca: open /nowhere/ca.crt",
		"--tls-min-version=1.1":                    "must be 1.2 or 1.3",
		"--metrics-bind-address=nowhere":           "nowhere",
		"--webhook-bind-address=9443":              "missing port",
	} {
		command := exec.CommandContext(t.Context(), os.Args[0], "--cert-dir="+dir, "--shutdown-delay=0s", "--health-probe-bind-address=0", "--metrics-bind-address=0",
			"--webhook-bind-address=127.0.0.1:0", flag)
		command.Env = []string{asProcess + "=1"}
		if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v %s, want %q", flag, err, out, want)
		}
	}
}
