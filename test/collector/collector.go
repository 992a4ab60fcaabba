// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package collector is a collector of OpenTelemetry for tests: it accepts OTLP over HTTP, and
// keeps the spans.
package collector

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector is a server on a local port.
type Collector struct {
	server *httptest.Server
	ended  chan struct{}
	// Refused is the status with which requests are answered, 200 by default.
	Refused atomic.Int32
	// Location is the header of this name in the answers to refused requests.
	Location atomic.Pointer[string]
	// Hangs makes requests wait until Close, with no answer.
	Hangs atomic.Bool

	mu       sync.Mutex
	spans    []Span
	requests int
	errs     []error
}

// Span is a span of a trace.
type Span struct {
	// Trace, ID and Parent are in hexadecimal, as in the header traceparent. Parent is empty for
	// a span without one.
	Trace, ID, Parent string
	Name              string
	// Process are the attributes of the process, such as service.name.
	Process map[string]string
	// Failed reports whether the status is an error, and Message is its text.
	Failed  bool
	Message string
	// Attributes are those of the span, as text.
	Attributes map[string]string
	// Events is the number of events of the span.
	Events int
}

// Start starts a collector.
func Start() *Collector {
	c := &Collector{ended: make(chan struct{})}
	c.server = httptest.NewServer(http.HandlerFunc(c.serve))
	return c
}

// URL is the value of the flag --tracing-endpoint.
func (c *Collector) URL() string { return c.server.URL }

// Close stops the collector.
func (c *Collector) Close() {
	close(c.ended)
	c.server.Close()
}

func (c *Collector) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	c.requests++
	c.mu.Unlock()
	if c.Hangs.Load() {
		select {
		case <-c.ended:
		case <-r.Context().Done():
		}
		return
	}
	if status := c.Refused.Load(); status != 0 {
		if location := c.Location.Load(); location != nil {
			w.Header().Set("Location", *location)
		}
		w.WriteHeader(int(status))
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		err = fmt.Errorf("%s %s of type %q is not a request of OTLP", r.Method, r.URL, r.Header.Get("Content-Type"))
	}
	var data tracepb.TracesData
	if err == nil {
		err = proto.Unmarshal(body, &data)
	}
	c.add(&data, err)
}

func (c *Collector) add(data *tracepb.TracesData, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.errs = append(c.errs, err)
	}
	for _, resource := range data.GetResourceSpans() {
		process := attributes(resource.GetResource().GetAttributes())
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans = append(c.spans, spanOf(process, span))
			}
		}
	}
}

func spanOf(process map[string]string, span *tracepb.Span) Span {
	return Span{
		Trace: hex.EncodeToString(span.GetTraceId()), ID: hex.EncodeToString(span.GetSpanId()), Parent: hex.EncodeToString(span.GetParentSpanId()),
		Name: span.GetName(), Process: process, Attributes: attributes(span.GetAttributes()), Events: len(span.GetEvents()),
		Failed: span.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR, Message: span.GetStatus().GetMessage(),
	}
}

func attributes(of []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, attribute := range of {
		switch value := attribute.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			out[attribute.GetKey()] = value.StringValue
		case *commonpb.AnyValue_BoolValue:
			out[attribute.GetKey()] = fmt.Sprint(value.BoolValue)
		case *commonpb.AnyValue_IntValue:
			out[attribute.GetKey()] = fmt.Sprint(value.IntValue)
		case *commonpb.AnyValue_DoubleValue:
			out[attribute.GetKey()] = fmt.Sprint(value.DoubleValue)
		default:
			out[attribute.GetKey()] = attribute.GetValue().String()
		}
	}
	return out
}

// Spans returns the spans that have come, and an error if a request was no request of OTLP.
func (c *Collector) Spans() ([]Span, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.errs) > 0 {
		return nil, c.errs[0]
	}
	return slices.Clone(c.spans), nil
}

// Requests returns the number of requests that have come.
func (c *Collector) Requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}

// String returns a span as text, to find what no span may have.
func (s Span) String() string { return fmt.Sprintf("%+v", plain(s)) }

// plain is a Span without its method String.
type plain Span
