// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
)

// metricsFlags returns the options that flags set.
func metricsFlags(t *testing.T, args ...string) *options {
	t.Helper()
	o := &options{}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	o.bind(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestMetricsAreServedInTheClearByDefault(t *testing.T) {
	t.Parallel()
	o := metricsFlags(t, "--metrics-bind-address=:1")
	options, err := o.metricsServer()
	if err != nil || options.SecureServing || options.FilterProvider != nil || options.BindAddress != ":1" {
		t.Errorf("options are %+v, %v", options, err)
	}
}

func TestMetricsCertificate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"tls.crt", "tls.key", "other.crt"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name  string
		flags []string
		fails string // a part of the error
	}{
		{"no certificate", []string{"--metrics-secure"}, ""},
		{"the default names", []string{"--metrics-secure", "--metrics-cert-path=" + folder}, ""},
		{"other names", []string{"--metrics-secure", "--metrics-cert-path=" + folder, "--metrics-cert-name=other.crt"}, ""},
		{"a missing key", []string{"--metrics-secure", "--metrics-cert-path=" + folder, "--metrics-cert-key=other.key"}, "other.key"},
		{"a missing folder", []string{"--metrics-secure", "--metrics-cert-path=" + folder + "/x"}, "no such file"},
		{"without TLS", []string{"--metrics-cert-path=" + folder}, "--metrics-secure"},
	} {
		o := metricsFlags(t, test.flags...)
		options, err := o.metricsServer()
		switch {
		case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
			t.Errorf("%s: the error is %v, want one with %q", test.name, err, test.fails)
		case test.fails == "" && (err != nil || !options.SecureServing || options.FilterProvider == nil):
			t.Errorf("%s: options are %+v, %v", test.name, options, err)
		}
	}
}

var _ = Describe("/metrics with --metrics-secure", func() {
	var (
		ctx       context.Context
		namespace string
	)
	BeforeEach(func() { ctx, namespace = context.Background(), newNamespace() })

	// token returns a token of a new service account that is bound to a cluster role, "" for
	// none.
	token := func(name, role string) string {
		GinkgoHelper()
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		Expect(env.Client.Create(ctx, account)).To(Succeed())
		if role != "" {
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
			}
			Expect(env.Client.Create(ctx, binding)).To(Succeed())
			DeferCleanup(func() error { return env.Client.Delete(ctx, binding) })
		}
		request := &authenticationv1.TokenRequest{}
		Expect(env.Client.SubResource("token").Create(ctx, account, request)).To(Succeed())
		return request.Status.Token
	}

	// serve serves /metrics with the permissions of a service account, and returns the URL.
	serve := func(bearer string) string {
		GinkgoHelper()
		addresses, err := freeport.Addresses(1)
		Expect(err).NotTo(HaveOccurred())
		address := addresses[0]
		o := options{metricsAddress: address, metrics: metricsserver.Options{SecureServing: true}}
		options, err := o.metricsServer()
		Expect(err).NotTo(HaveOccurred())
		cfg := rest.AnonymousClientConfig(env.Config)
		cfg.BearerToken = bearer
		client, err := rest.HTTPClientFor(cfg)
		Expect(err).NotTo(HaveOccurred())
		server, err := metricsserver.NewServer(options, cfg, client)
		Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- server.Start(ctx) }()
		DeferCleanup(func() { cancel(); Eventually(ended).Should(Receive(BeNil())) })
		return "https://" + address + "/metrics"
	}

	// get returns the status code of a request. The server's certificate is self-signed.
	get := func(url, bearer string) func() (int, error) {
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		return func() (int, error) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				return 0, err
			}
			if bearer != "" {
				request.Header.Set("Authorization", "Bearer "+bearer)
			}
			response, err := transport.RoundTrip(request)
			if err != nil {
				return 0, err
			}
			return response.StatusCode, response.Body.Close()
		}
	}

	It("is for clients whose token may get it, and needs system:auth-delegator", func() {
		reader := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: namespace + "-metrics-reader"},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
		}
		Expect(env.Client.Create(ctx, reader)).To(Succeed())
		DeferCleanup(func() error { return env.Client.Delete(ctx, reader) })
		allowed, refused := token("prometheus", reader.Name), token("tenant", "")

		url := serve(token("controller", "system:auth-delegator"))
		Eventually(get(url, allowed)).Should(Equal(http.StatusOK))
		Expect(get(url, "")()).To(Equal(http.StatusUnauthorized))
		Expect(get(url, "made.up.token")()).To(BeNumerically(">=", http.StatusBadRequest)) // 500, as for any error of the review.
		Expect(get(url, refused)()).To(Equal(http.StatusForbidden))
		Expect(get(strings.TrimSuffix(url, "metrics")+"other", allowed)()).To(Equal(http.StatusNotFound))

		By("without the permissions to ask the API server")
		Eventually(get(serve(token("unprivileged", "")), allowed)).Should(Equal(http.StatusInternalServerError))
	})

	It("speaks TLS 1.2 at least, and no HTTP/2", func() {
		url := serve(token("controller", "system:auth-delegator"))
		Eventually(get(url, "")).Should(Equal(http.StatusUnauthorized))
		address := strings.TrimSuffix(strings.TrimPrefix(url, "https://"), "/metrics")
		dial := func(config *tls.Config) (tls.ConnectionState, error) {
			config.InsecureSkipVerify = true
			connection, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
			if err != nil {
				return tls.ConnectionState{}, err
			}
			return connection.(*tls.Conn).ConnectionState(), connection.Close()
		}
		_, err := dial(&tls.Config{MaxVersion: tls.VersionTLS11})
		Expect(err).To(HaveOccurred())
		state, err := dial(&tls.Config{NextProtos: []string{"h2", "http/1.1"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(state.NegotiatedProtocol).To(Equal("http/1.1"))
	})
})

// records is text of several goroutines.
type records struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *records) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.WriteString(text + "\n")
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// startTraced starts the controller process with a collector, as main does. requests are those that
// the API server receives from it, each with the header traceparent.
func startTraced(collector string, requests *records) (stop func()) {
	GinkgoHelper()
	o := unserved()
	flags := flag.NewFlagSet("", flag.PanicOnError)
	o.tracing.AddFlags(flags)
	Expect(flags.Parse([]string{"--tracing-endpoint=" + collector})).To(Succeed())
	sendLast, err := o.tracing.Start("modelbox-controller")
	Expect(err).NotTo(HaveOccurred())
	cfg := rest.CopyConfig(asController)
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return recordingTransport{rt, requests} })
	o.tracing.Requests(cfg)
	mgr := newManager(cfg, &o)
	Expect(addControllersAndProbes(mgr, &o)).To(Succeed())
	traced := launch(mgr).synced()
	return func() {
		GinkgoHelper()
		Expect(traced.end()).To(Succeed())
		sendLast()
		otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())))
	}
}

type recordingTransport struct {
	http.RoundTripper
	requests *records
}

// RoundTrip implements http.RoundTripper.
func (t recordingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.requests.add(r.Method + " " + r.URL.RequestURI() + " traceparent=" + r.Header.Get("traceparent"))
	return t.RoundTripper.RoundTrip(r)
}

var _ = Describe("tracing", Ordered, func() {
	BeforeAll(alone)
	newBox := func(ctx context.Context) *modelv1.ModelBox {
		GinkgoHelper()
		return createBox(ctx, func(s *modelv1.ModelBoxSpec) { s.Envs = []corev1.EnvVar{{Name: "TOKEN", Value: "c2VjcmV0"}} })
	}

	It("makes a span of each reconcile, and of its requests, which the API server continues", func(ctx SpecContext) {
		var spans, requests records
		collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			spans.add(r.URL.Path + string(body)) // In protobuf, where text stands as it is.
		}))
		DeferCleanup(collector.Close)
		stopTraced := startTraced(collector.URL, &requests)
		box := newBox(ctx)
		Eventually(readiness(ctx, box)).Should(HavePrefix("False "))
		stopTraced()

		Expect(spans.String()).To(And(ContainSubstring("/v1/traces"), ContainSubstring("modelbox-controller"),
			ContainSubstring("reconcile ModelBox"), ContainSubstring(box.Namespace+"/deployments")))
		Expect(spans.String()).NotTo(ContainSubstring("c2VjcmV0"), "a span has content of an object")
		Expect(requests.String()).To(MatchRegexp(`POST /apis/apps/v1/namespaces/%s/deployments\S* traceparent=00-\S+-01\n`, box.Namespace))
		Expect(requests.String()).To(MatchRegexp(`GET \S*watch=true\S* traceparent=\n`))
		Expect(requests.String()).NotTo(MatchRegexp(`watch=true\S* traceparent=\S`))
	})

	It("delays no reconcile when the collector hangs", func(ctx SpecContext) {
		called, ended := make(chan struct{}, 100), make(chan struct{})
		collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			called <- struct{}{}
			<-ended
		}))
		DeferCleanup(func() {
			close(ended)
			collector.Close()
		})
		stopTraced := startTraced(collector.URL, &records{})
		Eventually(readiness(ctx, newBox(ctx))).Should(HavePrefix("False "))
		stopTraced()
		Expect(called).NotTo(BeEmpty(), "the collector has no request: the test tests nothing")
	})
})
