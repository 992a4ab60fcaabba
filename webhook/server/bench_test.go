// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkRequest is a request of 4 KB and its answer on a connection that is kept, client
// included.
func BenchmarkRequest(b *testing.B) {
	s := runReady(b, Options{}, map[string]http.Handler{"/echo": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if readBody(w, r) {
			_, _ = io.WriteString(w, "answer")
		}
	})})
	client, body := newClient(b), strings.Repeat("x", 4000)
	b.ReportAllocs()
	for b.Loop() {
		if r, _ := send(b, client, s.url("/echo"), strings.NewReader(body)); r.StatusCode != http.StatusOK {
			b.Fatal(r.Status)
		}
	}
}
