// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
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

// Proxy is a reverse proxy in front of an API server that delays its responses. Requests
// are not delayed, and neither are the events of a watch after the response's header. What
// the API server takes itself is a part of the delay, so that a slow machine adds nothing to it.
type Proxy struct {
	server *httptest.Server

	mu    sync.Mutex
	delay func() time.Duration
}

// NewProxy starts a proxy that uses the credentials of cfg. It delays nothing until Delay
// is called.
func NewProxy(cfg *rest.Config) (*Proxy, error) {
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting the proxy to the API server: %w", err)
	}
	target, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, fmt.Errorf("parsing the address of the API server: %w", err)
	}
	p := &Proxy{delay: Constant(0)}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // Each event of a watch is forwarded immediately.
		ModifyResponse: func(answer *http.Response) error {
			return p.wait(answer.Request)
		},
		// It is not an error if a client does not wait for a response.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), arrival{}, time.Now())))
	}))
	return p, nil
}

// Config returns the configuration for clients of the proxy.
func (p *Proxy) Config() *rest.Config { return &rest.Config{Host: p.server.URL, QPS: -1} }

// Close stops the proxy and closes all its connections.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// Delay sets the function that returns the delay of each response from now on: how long after
// its request it is sent, at least.
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

// arrival is the key of the time at which the proxy received a request, in its context.
type arrival struct{}

// wait waits for the rest of the next delay, or until the request is cancelled.
func (p *Proxy) wait(request *http.Request) error {
	arrived, _ := request.Context().Value(arrival{}).(time.Time)
	timer := time.NewTimer(p.next() - time.Since(arrived))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-request.Context().Done():
		return request.Context().Err()
	}
}

// Constant delays all responses by the same time.
func Constant(delay time.Duration) func() time.Duration {
	return func() time.Duration { return delay }
}

// Varying delays each response by a random time below longest.
func Varying(seed uint64, longest time.Duration) func() time.Duration {
	random := rand.New(rand.NewPCG(seed, 0))
	return func() time.Duration { return time.Duration(random.Int64N(int64(longest))) }
}
