// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/spans"
	"github.com/modelbox-operator/modelbox-operator/internal/tracing"
	"github.com/modelbox-operator/modelbox-operator/test/collector"
)

// tracedProcess is a controller process that sends spans.
type tracedProcess struct {
	provider *tracing.Provider
	cancel   context.CancelFunc
	done     chan error
	mu       sync.Mutex
	requests []tracedRequest
}

// tracedRequest is a request as the API server receives it.
type tracedRequest struct {
	method, path string
	watch        bool
	// traceparent is the header of this name.
	traceparent string
}

// startTraced starts the controller process with a collector, as main does.
func startTraced(c *collector.Collector) *tracedProcess {
	GinkgoHelper()
	o := options{metricsAddress: "0", probeAddress: "0", pprofAddress: "0", workers: 4, fetcher: models}
	flags := flag.NewFlagSet("", flag.PanicOnError)
	o.tracing.AddFlags(flags)
	Expect(flags.Parse([]string{"--tracing-endpoint=" + c.URL()})).To(Succeed())
	p := &tracedProcess{done: make(chan error, 1)}
	var err error
	p.provider, err = o.tracing.Start("modelbox-controller")
	Expect(err).NotTo(HaveOccurred())
	cfg := rest.CopyConfig(asController)
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return recordingTransport{rt, p} })
	spans.Requests(cfg, p.provider)
	mgr := newManager(cfg, o)
	Expect(addControllersAndProbes(spans.Manager(mgr, p.provider), &o)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() { p.done <- mgr.Start(ctx) }()
	Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	return p
}

// stop ends the process, and sends its spans.
func (p *tracedProcess) stop() {
	GinkgoHelper()
	p.cancel()
	Eventually(p.done).Should(Receive(BeNil()))
	p.provider.Stop()
}

// recordingTransport keeps what the API server receives.
type recordingTransport struct {
	http.RoundTripper
	process *tracedProcess
}

// RoundTrip implements http.RoundTripper.
func (t recordingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.process.mu.Lock()
	t.process.requests = append(t.process.requests, tracedRequest{
		method: r.Method, path: r.URL.Path, watch: r.URL.Query().Has("watch"), traceparent: r.Header.Get("traceparent"),
	})
	t.process.mu.Unlock()
	return t.RoundTripper.RoundTrip(r)
}

// received returns the requests of the process, of which more may come.
func (p *tracedProcess) received() []tracedRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// requestsOf returns the requests below a span, sorted, with the names of objects in place of
// paths.
func requestsOf(all []collector.Span, id string) []string {
	GinkgoHelper()
	var out []string
	for _, span := range all {
		if span.Parent != id {
			continue
		}
		address, err := url.Parse(span.Attributes["url.full"])
		Expect(err).NotTo(HaveOccurred())
		path := regexp.MustCompile(`.*/namespaces/[^/]*/`).ReplaceAllString(address.Path, "")
		out = append(out, span.Attributes["http.request.method"]+" "+path+" "+span.Attributes["http.response.status_code"])
	}
	slices.Sort(out)
	return out
}

// resultsOf returns how the reconciles of ModelBoxes in a namespace ended, of which a collector has
// the spans. The first one that did not fail has made the children.
func resultsOf(c *collector.Collector, namespace string) []string {
	GinkgoHelper()
	all, err := c.Spans()
	Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, span := range all {
		if span.Name == "reconcile ModelBox" && span.Attributes["namespace"] == namespace {
			out = append(out, span.Attributes["result"])
		}
	}
	return out
}

var _ = Describe("tracing", Ordered, func() {
	const secret = "c2VjcmV0LW9mLXRlYW0"
	var c *collector.Collector
	BeforeAll(func() {
		stop() // Only the process of this spec may reconcile.
		DeferCleanup(start)
	})
	BeforeEach(func() {
		c = collector.Start()
		DeferCleanup(c.Close)
	})

	It("makes a span of each reconcile, with one for each of its requests", func(ctx SpecContext) {
		p := startTraced(c)
		box := &modelv1.ModelBox{
			ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"},
			Spec: modelv1.ModelBoxSpec{
				Image: "nginx:1.27", Envs: []corev1.EnvVar{{Name: "TOKEN", Value: secret}}, Ports: []modelv1.Port{{Port: 80}},
			},
		}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Eventually(readiness(ctx, box)).Should(HavePrefix("False "))
		// The end of the process would cut the reconcile whose status has just been written.
		Eventually(func() []string { return resultsOf(c, box.Namespace) }).Should(ContainElement(BeElementOf("success", "requeue_after")))

		// A repair begins with a live read.
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: box.Namespace, Name: box.Name}}
		change(ctx, deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })
		Eventually(func() int32 { return *get(ctx, deployment).Spec.Replicas }).ShouldNot(BeEquivalentTo(7))
		Eventually(func(g Gomega) {
			all, err := c.Spans()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(all).To(ContainElement(HaveField("Attributes", And(
				HaveKeyWithValue("http.request.method", "PATCH"), HaveKeyWithValue("url.full", ContainSubstring("/deployments/box"))))))
		}).Should(Succeed())
		p.stop()

		all, err := c.Spans()
		Expect(err).NotTo(HaveOccurred())
		var requests []string
		byID := map[string]collector.Span{}
		for _, span := range all {
			byID[span.ID] = span
			Expect(span.Process).To(HaveKeyWithValue("service.name", "modelbox-controller"))
			Expect(span.String()).NotTo(ContainSubstring(secret), "a span has content of an object")
			// The Deployment also queues an App of its name, which does not exist.
			if span.Attributes["namespace"] != box.Namespace || span.Name != "reconcile ModelBox" {
				continue
			}
			Expect(span.Parent).To(BeEmpty())
			Expect(span.Attributes).To(HaveKeyWithValue("kind", "ModelBox"))
			Expect(span.Attributes).To(HaveKeyWithValue("name", "box"))
			Expect(span.Attributes["reconcileID"]).NotTo(BeEmpty())
			requests = append(requests, requestsOf(all, span.ID)...)
		}
		Expect(requests).To(ContainElements("POST deployments 201", "POST services 201", "PATCH modelboxes/box/status 200",
			"GET deployments/box 200", "PATCH deployments/box 200"))

		for _, span := range all {
			if span.Parent == "" {
				Expect(span.Name).To(HavePrefix("reconcile "))
			}
		}

		// The API server gets the span of a request as the parent of its own. How many requests a
		// reconcile makes depends on how far behind the cache is: a live read may be among them.
		ofReconcile := map[string]string{}
		for _, span := range all {
			ofReconcile["00-"+span.Trace+"-"+span.ID+"-01"] = byID[span.Parent].Name
		}
		var created, watches int
		for _, request := range p.received() {
			switch {
			case request.watch:
				watches++
				Expect(request.traceparent).To(BeEmpty(), request.path)
			case request.method == http.MethodPost && request.path == "/apis/apps/v1/namespaces/"+box.Namespace+"/deployments":
				created++
				Expect(ofReconcile).To(HaveKeyWithValue(request.traceparent, "reconcile ModelBox"))
			case request.traceparent != "":
				Expect(ofReconcile).To(HaveKeyWithValue(request.traceparent, HavePrefix("reconcile ")), request.path)
			}
		}
		Expect([]int{created, watches}).To(HaveEach(BeNumerically(">", 0)), "creations and watches")
	})

	It("delays no reconcile when the collector hangs", func(ctx SpecContext) {
		c.Hangs.Store(true)
		p := startTraced(c)
		namespace := newNamespace()
		for _, name := range []string{"a", "b", "c"} {
			box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1.27"}}
			Expect(env.Client.Create(ctx, box)).To(Succeed())
			Eventually(readiness(ctx, box)).Should(HavePrefix("False "))
		}
		p.stop()
		Expect(c.Requests()).To(BeNumerically(">", 0), "the collector has no request: the test tests nothing")
	})

	It("adds nothing when it is off", func() {
		cfg := rest.CopyConfig(asController)
		spans.Requests(cfg, nil)
		Expect(cfg.WrapTransport).To(BeNil())
		mgr := newManager(cfg, options{metricsAddress: "0", probeAddress: "0", pprofAddress: "0"})
		Expect(spans.Manager(mgr, nil)).To(BeIdenticalTo(mgr))
	})
})
