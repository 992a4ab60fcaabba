// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// service sends new connections to one of several servers, as a Service does, and
// learns a little late that one is no longer ready.
type service struct {
	backend atomic.Pointer[running]
}

const lateness = 150 * time.Millisecond

func (s *service) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, s.backend.Load().address())
}

// replace stops the server that serves and lets next serve when the word is out.
func (s *service) replace(next *running) {
	old := s.backend.Load()
	old.stop()
	eventually(old.t, "the old server is not ready", func() bool { return old.Ready(nil) != nil })
	time.AfterFunc(lateness, func() { s.backend.Store(next) })
	old.wait()
	eventually(old.t, "the new server serves", func() bool { return s.backend.Load() == next })
}

// TestRollingRestart sends reviews without a pause, on connections that are kept,
// while one server after another takes over.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opts  Options
		loses bool
	}{
		"drained":     {Options{Drain: 5 * time.Second, Linger: 5 * time.Second, Grace: 5 * time.Second}, false},
		"not drained": {Options{Grace: 5 * time.Second}, true},
	} {
		t.Run(name, func(t *testing.T) {
			svc := new(service)
			svc.backend.Store(runReady(t, tc.opts, nil))
			h := hammer(t, svc, 16)
			for range 3 {
				before := h.sent.Load()
				eventually(t, "requests are served", func() bool { return h.sent.Load() > before+50 })
				svc.replace(runReady(t, tc.opts, nil))
			}
			h.stop()
			lost, sent := h.lost.Load(), h.sent.Load()
			t.Logf("%d of %d requests were lost (%s)", lost, sent, h.reason())
			if tc.loses != (lost > 0) {
				t.Errorf("%d of %d requests were lost (%s), want some: %v", lost, sent, h.reason(), tc.loses)
			}
		})
	}
}

type load struct {
	sent, lost atomic.Int64
	first      atomic.Pointer[string]
	stop       func()
}

// hammer sends reviews from several goroutines until it is stopped.
func hammer(t *testing.T, svc *service, clients int) *load {
	transport := &http.Transport{
		DialContext: svc.dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 25,
	}
	client := &http.Client{Transport: transport}
	h, ctx, wg := new(load), t.Context(), new(sync.WaitGroup)
	ctx, cancel := context.WithCancel(ctx)
	for range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				h.sent.Add(1)
				if err := sendOne(client); err != nil {
					h.lost.Add(1)
					h.first.CompareAndSwap(nil, new(err.Error()))
				}
			}
		})
	}
	h.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		transport.CloseIdleConnections()
	})
	t.Cleanup(h.stop)
	return h
}

func sendOne(client *http.Client) error {
	r, err := client.Post("https://webhook.test"+admission.MutatePath(appKind.GVK), "application/json", strings.NewReader(review))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %d %s: %w", r.StatusCode, text, err)
	}
	return nil
}

// reason is why the first was lost.
func (h *load) reason() string {
	if first := h.first.Load(); first != nil {
		return *first
	}
	return "none"
}
