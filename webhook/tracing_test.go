// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/test/collector"
	"github.com/modelbox-operator/modelbox-operator/webhook/server"
)

const (
	traceOfAPIServer = "0af7651916cd43dd8448eb211c80319c"
	spanOfAPIServer  = "b7ad6b7169203331"
)

// startTraced starts a process that sends spans to a collector, and waits until it is ready.
func startTraced(t *testing.T, c *collector.Collector, flags ...string) *process {
	t.Helper()
	t.Cleanup(c.Close)
	p := startProcess(t, []string{asProcess + "=1"}, append(flags, "--tracing-endpoint="+c.URL())...)
	p.eventually("it is ready", func() bool { return p.get("http://"+p.probes+"/readyz") == "ok" })
	return p
}

// post sends a review, as a part of the API server's trace if parent is set, and returns the
// answer.
func (p *process) post(path, review, parent string) string {
	p.Helper()
	r, err := http.NewRequest(http.MethodPost, "https://"+p.webhooks+path, strings.NewReader(review))
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if parent != "" {
		r.Header.Set("traceparent", parent)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return string(body)
}

func sampled(flags string) string {
	return fmt.Sprintf("00-%s-%s-%s", traceOfAPIServer, spanOfAPIServer, flags)
}

// secret is in the objects, and in the errors of those that are refused, and in no span.
const secret = "c2VjcmV0LW9mLXRlYW0"

// boxReview is a review of a ModelBox. A name that is not empty follows the namespace.
func boxReview(operation, name, image string) string {
	return fmt.Sprintf(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "operation": %q,
"kind": {"group": "model.github.com", "version": "v1", "kind": "ModelBox"}, "namespace": "team", "name": %q,
"object": {"metadata": {"name": "box", "annotations": {"a": %[4]q}}, "spec": {"image": %[3]q, "envs": [{"name": "TOKEN", "value": %[4]q}]}}}}`,
		operation, name, image, secret)
}

// Each review is one span, a child of the API server's. It says which object was admitted and
// how that ended, and no more.
func TestSpansOfAdmissions(t *testing.T) {
	t.Parallel()
	const mutateBox, validateBox = "/mutate-model-github-com-v1-modelbox", "/validate-model-github-com-v1-modelbox"
	c := collector.Start()
	p := startTraced(t, c)
	var want []collector.Span
	for _, test := range []struct {
		path, review, parent string
		span                 collector.Span
	}{
		{mutateBox, boxReview("CREATE", "box", "nginx:1.27"), sampled("01"), collector.Span{
			Trace: traceOfAPIServer, Parent: spanOfAPIServer, Name: "mutate ModelBox", Attributes: map[string]string{
				"webhook": "mutating", "kind": "ModelBox", "namespace": "team", "name": "box", "operation": "CREATE", "uid": "u", "allowed": "true", "result": "allowed"},
		}},
		{validateBox, boxReview("CREATE", "", "nginx:1.27"), sampled("01"), collector.Span{
			Trace: traceOfAPIServer, Parent: spanOfAPIServer, Name: "validate ModelBox", Attributes: map[string]string{
				"webhook": "validating", "kind": "ModelBox", "namespace": "team", "operation": "CREATE", "uid": "u", "allowed": "true", "result": "allowed"},
		}},
		{mutateBox, boxReview("CREATE", "box", secret+" not an image"), "", collector.Span{
			Name: "mutate ModelBox", Attributes: map[string]string{
				"webhook": "mutating", "kind": "ModelBox", "namespace": "team", "name": "box", "operation": "CREATE", "uid": "u", "allowed": "false", "result": "refused"},
		}},
		{validateBox, boxReview("PATCH", "box", "nginx:1.27"), "", collector.Span{
			Name: "validate ModelBox", Failed: true, Attributes: map[string]string{
				"webhook": "validating", "kind": "ModelBox", "namespace": "team", "name": "box", "operation": "PATCH", "uid": "u", "allowed": "false", "result": "error"},
		}},
		{mutateBox, secret, "not a traceparent", collector.Span{
			Name: "mutate ModelBox", Failed: true, Attributes: map[string]string{"webhook": "mutating", "kind": "ModelBox", "http.response.status_code": "400"},
		}},
		{mutateBox, boxReview("CREATE", "box", "nginx:1.27"), sampled("00"), collector.Span{}}, // The API server does not record it.
		// Text that is not UTF-8 cannot be in a span, and would keep others from the collector.
		{mutateBox, strings.ReplaceAll(boxReview("CREATE", "NAME", "nginx:1.27"), "NAME", "\xff\\ud800"), "", collector.Span{
			Name: "mutate ModelBox", Attributes: map[string]string{
				"webhook": "mutating", "kind": "ModelBox", "namespace": "team", "name": "\ufffd\ufffd", "operation": "CREATE", "uid": "u", "allowed": "true", "result": "allowed"},
		}},
	} {
		p.post(test.path, test.review, test.parent)
		if test.span.Name != "" {
			want = append(want, test.span)
		}
	}
	p.end()
	got, err := c.Spans()
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if process := got[i].Process["service.name"]; process != "modelbox-webhook" {
			t.Errorf("a span is of %q", process)
		}
		if text := got[i].String(); strings.Contains(text, secret) {
			t.Errorf("a span has content of the object: %s", text)
		}
		if got[i].Parent == "" {
			got[i].Trace = "" // A random one.
		}
		got[i].Process, got[i].ID = nil, ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s\n%s", diff, &p.output)
	}
}

// An answer is the same with and without tracing, byte for byte.
func TestTracingChangesNoAnswer(t *testing.T) {
	t.Parallel()
	with := startTraced(t, collector.Start())
	without := startProcess(t, []string{asProcess + "=1"})
	without.eventually("it is ready", func() bool { return without.get("http://"+without.probes+"/readyz") == "ok" })
	for _, review := range []string{unitedDeployment, boxReview("CREATE", "box", "nginx:1.27"), boxReview("CREATE", "box", "not an image"), "{}", ""} {
		for _, path := range []string{unitedDeploymentPath, "/mutate-model-github-com-v1-modelbox", "/validate-model-github-com-v1-modelbox", "/none"} {
			if diff := cmp.Diff(without.post(path, review, ""), with.post(path, review, sampled("01"))); diff != "" {
				t.Errorf("%s %s: (-without +with tracing):\n%s", path, review, diff)
			}
		}
	}
	with.end()
	without.end()
}

// A collector that never answers delays neither an admission nor the end of the process for long.
func TestAdmissionWithACollectorThatHangs(t *testing.T) {
	t.Parallel()
	c := collector.Start()
	c.Hangs.Store(true)
	p := startTraced(t, c)
	p.client.Transport.(*http.Transport).DisableKeepAlives = false
	// More than the queue and the batch that is sent.
	for range 3000 {
		if answer := p.post(unitedDeploymentPath, unitedDeployment, ""); !json.Valid([]byte(answer)) || !strings.Contains(answer, `"allowed":true`) {
			t.Fatal(answer)
		}
	}
	p.end()
	if c.Requests() == 0 {
		t.Error("the collector has no request: the test tests nothing")
	}
}

// A flag that would have no effect, or cannot be used, is an error.
func TestTracingFlags(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"--tracing-sampling-rate-per-million=1": "no effect without --tracing-endpoint",
		"--tracing-endpoint=collector:4318":     "begins with http",
	} {
		p := startProcess(t, []string{asProcess + "=1"}, flag)
		if err := p.Wait(); err == nil || !strings.Contains(p.output.String(), want) {
			t.Errorf("%s: %v %s, want %q", flag, err, &p.output, want)
		}
	}
}

// withTraceparent adds the header to the requests of a client.
type withTraceparent struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w withTraceparent) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("traceparent", sampled("01"))
	return w.RoundTripper.RoundTrip(r)
}

var _ = Describe("tracing", func() {
	It("continues the trace of a request to the API server", func(ctx SpecContext) {
		c := collector.Start()
		DeferCleanup(c.Close)
		stop()
		o := optionsOf(server.Options{})
		flags := flag.NewFlagSet("", flag.PanicOnError)
		o.tracing.AddFlags(flags)
		Expect(flags.Parse([]string{"--tracing-endpoint=" + c.URL(), "--tracing-sampling-rate-per-million=0"})).To(Succeed())
		startWith(&o, func(ctx context.Context) error { return serve(ctx, &o) })

		cfg := rest.CopyConfig(env.Config)
		cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return withTraceparent{rt} })
		tracing, err := client.New(cfg, client.Options{Scheme: env.Client.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1.27"}}
		Expect(tracing.Create(ctx, box)).To(Succeed())
		stop() // Sends the spans.
		start(server.Options{})

		spans, err := c.Spans()
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for _, span := range spans {
			names = append(names, span.Name)
			Expect(span.Trace).To(Equal(traceOfAPIServer))
			Expect(span.Parent).NotTo(BeEmpty())
			Expect(span.Attributes).To(HaveKeyWithValue("name", "box"))
		}
		Expect(names).To(ConsistOf("mutate ModelBox", "validate ModelBox"))
	})
})
