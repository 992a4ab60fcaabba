// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Proxy is a reverse proxy in front of an API server that delays its answers. A
// request takes effect at once. What a watch sends after its header is not delayed.
type Proxy struct {
	server *httptest.Server

	mu    sync.Mutex
	delay func() time.Duration
}

// NewProxy starts a proxy that asks the API server with the rights of cfg and delays
// nothing yet.
func NewProxy(cfg *rest.Config) (*Proxy, error) {
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting the proxy to the API server: %w", err)
	}
	target, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	p := &Proxy{delay: Constant(0)}
	p.server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // A watch is sent on event by event.
		ModifyResponse: func(answer *http.Response) error {
			return p.wait(answer.Request)
		},
		// A client that did not wait for its answer is part of the test.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	return p, nil
}

// Config is the configuration of a client that asks by way of the proxy.
func (p *Proxy) Config() *rest.Config { return &rest.Config{Host: p.server.URL, QPS: -1} }

// Close ends the proxy and all that asks by way of it.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// Delay sets how late each answer is from now on.
func (p *Proxy) Delay(each func() time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = each
}

func (p *Proxy) next() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay()
}

// wait waits for the next delay, or until the client of a request has gone.
func (p *Proxy) wait(request *http.Request) error {
	timer := time.NewTimer(p.next())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-request.Context().Done():
		return request.Context().Err()
	}
}

// Constant makes each answer late by the same delay.
func Constant(delay time.Duration) func() time.Duration {
	return func() time.Duration { return delay }
}

// Varying makes each answer late by a delay of its own, below longest.
func Varying(seed uint64, longest time.Duration) func() time.Duration {
	random := rand.New(rand.NewPCG(seed, 0))
	return func() time.Duration { return time.Duration(random.Int64N(int64(longest))) }
}
