// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// collected starts a collector, and returns its URL and a function that returns what it has
// received so far, in OTLP's protobuf, where text and identifiers stand as they are.
func collected(t *testing.T) (url string, received func() string) {
	t.Helper()
	var mu sync.Mutex
	var all strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		all.WriteString(r.Method + r.URL.Path + string(body))
	}))
	t.Cleanup(collector.Close)
	return collector.URL, func() string { mu.Lock(); defer mu.Unlock(); return all.String() }
}

// A review that the API server samples is a span of its trace, and others are sampled by the ratio.
// Spans have no content of objects.
func TestSpansOfAdmissions(t *testing.T) {
	t.Parallel()
	const trace = "0af7651916cd43dd8448eb211c80319c"
	id, _ := hex.DecodeString(trace)
	for name, test := range map[string]struct {
		flag, ratio string
		want        bool
	}{
		"sampled": {"01", "0", true}, "not sampled": {"00", "1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, received := collected(t)
			p := startReady(t, nil, "--tracing-endpoint="+url, "--tracing-sampling-ratio="+test.ratio)
			p.send("00-" + trace + "-b7ad6b7169203331-" + test.flag)
			p.end() // Sends the spans.
			got := received()
			for _, part := range []string{"POST/v1/traces", string(id), "modelbox-webhook", unitedDeploymentPath} {
				if strings.Contains(got, part) != test.want {
					t.Errorf("%q is in what the collector received: %t", part, !test.want)
				}
			}
			if strings.Contains(got, "deploymentName") {
				t.Error("a span has content of the object")
			}
		})
	}
}

// A collector that does not answer delays neither admissions nor the end of the process.
func TestCollectorThatHangs(t *testing.T) {
	t.Parallel()
	called, ended := make(chan struct{}, 100), make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		called <- struct{}{}
		<-ended
	}))
	defer collector.Close()
	defer close(ended)
	p := startReady(t, []string{"OTEL_BSP_MAX_QUEUE_SIZE=20", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=5"}, "--tracing-endpoint="+collector.URL)
	p.client.Transport.(*http.Transport).DisableKeepAlives = false
	for range 50 { // More than the queue and the batch that is sent.
		p.send("")
	}
	p.end()
	if len(called) == 0 {
		t.Error("the collector has no request: the test tests nothing")
	}
}
