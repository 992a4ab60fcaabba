// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

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
	o := options{metricsAddress: "0", probeAddress: "0", pprofAddress: "0", workers: 4, fetcher: models}
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
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	return func() {
		GinkgoHelper()
		cancel()
		Eventually(done).Should(Receive(BeNil()))
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
	BeforeAll(func() {
		stop() // Only the process of this spec may reconcile.
		DeferCleanup(start)
	})
	newBox := func(ctx context.Context) *modelv1.ModelBox {
		GinkgoHelper()
		box := &modelv1.ModelBox{
			ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"},
			Spec:       modelv1.ModelBoxSpec{Image: "nginx:1.27", Envs: []corev1.EnvVar{{Name: "TOKEN", Value: "c2VjcmV0"}}},
		}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		return box
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
