// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/go-logr/logr"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// client sends spans to a collector, as protobuf over HTTP. It is the otlptrace.Client of an
// exporter of OpenTelemetry, which does the rest.
//
// OpenTelemetry has two clients, otlptracegrpc and otlptracehttp. Both link gRPC and its gateway,
// which add 15 MB to a webhook process of 37 MB; this one adds 0.4 MB. It does without the
// retries of the two: spans that the collector does not accept are dropped.
type client struct {
	url  string
	http *http.Client
	log  logr.Logger

	mu sync.Mutex
	// dropped counts the spans that were dropped since the collector accepted some.
	dropped int
}

func newClient(endpoint *url.URL, logger logr.Logger) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 1
	return &client{url: endpoint.String(), log: logger, http: &http.Client{
		Transport: transport,
		Timeout:   exportTimeout,
		// A collector does not redirect, and another address may not have the spans.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Start implements otlptrace.Client.
func (*client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. It never returns an error: the reason is logged
// here, once until the collector accepts spans again.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	c.report(c.post(ctx, spans), count(spans))
	return nil
}

// post sends spans in one request. TracesData has the same encoding as the request of the
// protocol, ExportTraceServiceRequest, whose package links gRPC.
func (c *client) post(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encoding spans: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	// Read, so that the connection is used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answered %s", answer.Status)
	}
	return nil
}

// report logs when the collector begins to fail, and when it no longer does.
func (c *client) report(err error, spans int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil && c.dropped == 0:
		c.log.Info("Spans are dropped: the collector does not accept them", "endpoint", c.url, "reason", err.Error())
		fallthrough
	case err != nil:
		c.dropped += spans
	case c.dropped > 0:
		c.log.Info("The collector accepts spans again", "endpoint", c.url, "dropped", c.dropped)
		c.dropped = 0
	}
}

func count(of []*tracepb.ResourceSpans) int {
	n := 0
	for _, r := range of {
		for _, s := range r.GetScopeSpans() {
			n += len(s.GetSpans())
		}
	}
	return n
}
