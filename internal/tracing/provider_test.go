// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
	"github.com/modelbox-operator/modelbox-operator/test/collector"
)

func newCollector(t *testing.T) *collector.Collector {
	t.Helper()
	c := collector.Start()
	t.Cleanup(c.Close)
	return c
}

func started(t *testing.T, args ...string) *Provider {
	t.Helper()
	o, err := parse(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.Start("modelbox-test")
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	return p
}

func record(parent context.Context, p *Provider, name string, with ...attribute.KeyValue) {
	_, span := p.Tracer().Start(parent, name, trace.WithAttributes(with...))
	span.End()
}

func spans(t *testing.T, c *collector.Collector) []collector.Span {
	t.Helper()
	out, err := c.Spans()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Without a collector there is nothing: no provider, and no goroutine.
func TestOff(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, args := range [][]string{nil, {"--tracing-endpoint="}} {
		o, err := parse(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		p, err := o.Start("modelbox-test")
		if p != nil || err != nil {
			t.Errorf("%v: %v, %v, want nothing", args, p, err)
		}
		p.Stop()
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("there are %d goroutines, and %d before", after, before)
	}
}

// The last spans are sent when the process ends, with its name and version. The environment
// configures nothing.
func TestStopSendsTheLastSpans(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_SERVICE_NAME": "other", "OTEL_TRACES_SAMPLER": "always_off", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "0",
		"OTEL_BSP_MAX_QUEUE_SIZE": "1", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://192.0.2.1",
	} {
		t.Setenv(name, value)
	}
	c := newCollector(t)
	p := started(t, "--tracing-endpoint="+c.URL())
	for range 5 {
		record(t.Context(), p, "a", attribute.String("key", "value"))
	}
	p.Stop()
	got := spans(t, c)
	if len(got) != 5 {
		t.Fatalf("%d spans, want 5", len(got))
	}
	host, _ := os.Hostname()
	want := map[string]string{"service.name": "modelbox-test", "service.version": version.Version, "service.instance.id": host}
	for key, value := range want {
		if got[0].Process[key] != value {
			t.Errorf("%s is %q, want %q", key, got[0].Process[key], value)
		}
	}
	if got[0].Attributes["key"] != "value" {
		t.Errorf("attributes: %v", got[0].Attributes)
	}
}

// A trace that the API server began is recorded if the API server records it, and others by the
// rate.
func TestSampling(t *testing.T) {
	parent := func(flags trace.TraceFlags) context.Context {
		return trace.ContextWithRemoteSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: flags,
		}))
	}
	for rate, want := range map[string]string{"0": "recorded", "1000000": "recorded own"} {
		c := newCollector(t)
		p := started(t, "--tracing-endpoint="+c.URL(), "--tracing-sampling-rate-per-million="+rate)
		record(parent(trace.FlagsSampled), p, "recorded")
		record(parent(0), p, "not recorded")
		record(context.Background(), p, "own")
		p.Stop()
		var names []string
		for _, span := range spans(t, c) {
			names = append(names, span.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("rate %s: %q, want %q", rate, got, want)
		}
	}
}

// What a client sends as the name of an object makes no span too large.
func TestSpansAreBounded(t *testing.T) {
	c := newCollector(t)
	p := started(t, "--tracing-endpoint="+c.URL())
	record(t.Context(), p, "a", attribute.String("name", strings.Repeat("x", 1<<20)))
	p.Stop()
	got := spans(t, c)
	if len(got) != 1 {
		t.Fatalf("%d spans, want 1", len(got))
	}
	if n := len(got[0].Attributes["name"]); n == 0 || n > limits.AttributeValueLengthLimit {
		t.Errorf("a value has %d bytes", n)
	}
}

// A collector that does not answer delays no span. The queue is bounded, and so is the time that
// the end of the process takes. Only an upper bound of a minute is asserted, with 3 s expected.
func TestCollectorThatHangs(t *testing.T) {
	c := newCollector(t)
	c.Hangs.Store(true)
	p := started(t, "--tracing-endpoint="+c.URL())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 5 * queueLength {
			record(context.Background(), p, "a")
		}
		p.Stop()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the spans, or the end, wait for the collector")
	}
	if c.Requests() == 0 {
		t.Error("the collector has no request: the test tests nothing")
	}
	if got := spans(t, c); len(got) > 0 {
		t.Errorf("%d spans", len(got))
	}
}

// The reason why spans are dropped is logged once, and also that they are accepted again.
func TestCollectorThatRefuses(t *testing.T) {
	var redirected atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { redirected.Add(1) }))
	defer other.Close()
	c := newCollector(t)
	o, err := parse(t, "--tracing-endpoint="+c.URL())
	if err != nil {
		t.Fatal(err)
	}
	var log []string
	logger := funcr.New(func(_, args string) { log = append(log, args) }, funcr.Options{})
	client := newClient(o.endpoint, logger)
	upload := func(status int32) {
		c.Refused.Store(status)
		c.Location.Store(new(other.URL))
		if err := client.UploadTraces(t.Context(), one()); err != nil {
			t.Error(err)
		}
	}
	for _, status := range []int32{0, 503, 503, 302, 0, 0, 400} {
		upload(status)
	}
	for i, want := range []string{"503 Service Unavailable", `"dropped"=3`, "400 Bad Request"} {
		if i >= len(log) || !strings.Contains(log[i], want) {
			t.Fatalf("%q, want %q in line %d", log, want, i)
		}
	}
	if len(log) != 3 {
		t.Errorf("%q, want 3 lines", log)
	}
	if redirected.Load() > 0 {
		t.Error("the spans were sent to another address")
	}
}

// one is one span.
func one() []*tracepb.ResourceSpans {
	return []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: "a"}}}}}}
}

func TestNoCollector(t *testing.T) {
	c := collector.Start()
	url := c.URL()
	c.Close()
	p := started(t, "--tracing-endpoint="+url)
	record(t.Context(), p, "a")
	p.Stop()
}
