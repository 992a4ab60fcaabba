// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Options are what a Server can be told. In DefaultOptions each has a value that
// suits a cluster; the zero value of a bound means that default, but Drain,
// Linger and Grace are taken as they are, zero included.
type Options struct {
	// Addr is the address to listen on, ":9443" by default.
	Addr string
	// CertDir holds tls.crt and tls.key, as a mounted Secret of type
	// kubernetes.io/tls does. They are read again when they change. While they
	// are missing, the server waits for them and is not ready: cert-manager may
	// be a moment later than the pod.
	CertDir string

	// MaxInFlight bounds the requests that are read or answered at a time. One
	// more is answered 503 with Retry-After, upon which the API server tries
	// again, as long as the webhook's timeoutSeconds lasts. 256 by default: with
	// 0.1 ms of work each, that many are done within 30 ms.
	MaxInFlight int64
	// MaxBodyBytes bounds one request's body; a larger one is answered 413. By
	// default 7 MiB, as in controller-runtime: the API server reads at most 3 MiB
	// of an object from a client, and a review of an update holds two of them,
	// with less than 1 MiB of other things. (Two objects as etcd stores them
	// would make no more than 3 MiB.)
	MaxBodyBytes int64
	// MaxBytesInFlight bounds the bodies of all requests in flight together, as
	// they have arrived so far. A request that would exceed it is answered 503,
	// as above. 32 MiB by default; without it MaxInFlight bodies of MaxBodyBytes
	// could take 1.75 GiB.
	MaxBytesInFlight int64
	// MaxHeaderBytes bounds a request's headers, 16 KiB by default; the API
	// server sends a few hundred bytes.
	MaxHeaderBytes int

	// ReadHeaderTimeout is the time for a TLS handshake, and then for the headers
	// of each request from its first byte on: 5 s by default.
	ReadHeaderTimeout time.Duration
	// ReadTimeout is the time for a whole request from its first byte on: 10 s by
	// default, which is also how long the API server waits for a webhook unless
	// told otherwise.
	ReadTimeout time.Duration
	// WriteTimeout is the time from the end of a request's headers to the end of
	// its answer: 15 s by default.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection may be without a request: 120 s by
	// default. It must be longer than the client's, which is 90 s in client-go.
	// Whoever closes an idle connection may do so while a request is on its way
	// on it; if that is the client it knows, if it is the server the request is
	// lost, and a POST is not repeated.
	IdleTimeout time.Duration

	// Drain, Linger and Grace are the three parts of a shutdown: see drain.go.
	// 15 s, 80 s and 10 s by default, so a pod needs 120 s of
	// terminationGracePeriodSeconds, and the manager a GracefulShutdownTimeout
	// not much below; the whole is rarely taken.
	Drain, Linger, Grace time.Duration
}

// DefaultOptions are right for a pod behind a Service. CertDir is left to say.
func DefaultOptions() Options {
	o := Options{Drain: 15 * time.Second, Linger: 80 * time.Second, Grace: 10 * time.Second}
	o.fill()
	return o
}

func (o *Options) fill() {
	o.Addr = cmp.Or(o.Addr, ":9443")
	o.MaxInFlight = cmp.Or(o.MaxInFlight, 256)
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, 7<<20)
	o.MaxBytesInFlight = cmp.Or(o.MaxBytesInFlight, 32<<20)
	o.MaxHeaderBytes = cmp.Or(o.MaxHeaderBytes, 16<<10)
	o.ReadHeaderTimeout = cmp.Or(o.ReadHeaderTimeout, 5*time.Second)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 10*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 15*time.Second)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 120*time.Second)
}

// Server serves webhooks over TLS 1.2 or later and HTTP/1.1. It is a Runnable of
// controller-runtime's manager. HTTP/2 is left out because the API server does
// not use it with webhooks: it would send all requests to one replica.
type Server struct {
	opts     Options
	mux      *http.ServeMux
	log      logr.Logger
	certs    certificates
	state    atomic.Int32
	inFlight atomic.Int64
	bytes    atomic.Int64
	// addr is what is listened on, for tests, which ask for any free port.
	addr atomic.Pointer[net.Addr]
}

const (
	starting int32 = iota
	serving
	draining
	stopped
)

// NewServer makes a server. It does nothing until Start.
func NewServer(opts Options) *Server {
	opts.fill()
	logger := ctrllog.Log.WithName("admission-server")
	return &Server{
		opts: opts, mux: http.NewServeMux(), log: logger,
		certs: certificates{dir: opts.CertDir, log: logger, retry: retryCertificate, poll: pollCertificate, expiry: certificateExpiry},
	}
}

// Handle serves handler at path. It is for before Start, and panics if the path is
// taken.
func (s *Server) Handle(path string, handler http.Handler) { s.mux.Handle(path, handler) }

// NeedLeaderElection says no: every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until ctx is done, then drains and returns nil. It returns an error
// at once if it cannot listen.
func (s *Server) Start(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.opts.Addr)
	if err != nil {
		return fmt.Errorf("listening for admission requests: %w", err)
	}
	s.addr.Store(new(listener.Addr()))
	s.log.Info("Listening", "addr", listener.Addr().String())
	go s.certs.keep(ctx)
	return s.serve(ctx, listener)
}

func (s *Server) serve(ctx context.Context, raw net.Listener) error {
	conns := newListener(raw, s.tlsConfig(), s.opts, s.log)
	server := s.httpServer()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(conns) }()
	s.state.Store(serving)
	defer s.state.Store(stopped)
	select {
	case err := <-ended:
		return fmt.Errorf("serving admission requests: %w", err)
	case <-ctx.Done():
	}
	s.drain(server, conns)
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("ending the admission server: %w", err)
	}
	return nil
}

func (s *Server) httpServer() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:           http.HandlerFunc(s.admit),
		Protocols:         protocols,
		ReadHeaderTimeout: s.opts.ReadHeaderTimeout,
		ReadTimeout:       s.opts.ReadTimeout,
		WriteTimeout:      s.opts.WriteTimeout,
		IdleTimeout:       s.opts.IdleTimeout,
		MaxHeaderBytes:    s.opts.MaxHeaderBytes,
		ErrorLog:          log.New(quiet{s.log}, "", 0),
	}
}

func (s *Server) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: s.certs.get,
	}
}

// Ready is a healthz.Checker: nil while the server listens with a certificate and
// is not on its way out.
func (s *Server) Ready(*http.Request) error {
	switch s.state.Load() {
	case starting:
		return errors.New("the admission server is not listening yet")
	case serving:
		return s.certs.loaded()
	case draining:
		return errors.New("the admission server is draining")
	}
	return errors.New("the admission server has stopped")
}

// Healthy is a healthz.Checker: nil unless the server has stopped. One that waits
// for its certificate, or drains, would gain nothing from a restart.
func (s *Server) Healthy(*http.Request) error {
	if s.state.Load() == stopped {
		return errors.New("the admission server has stopped")
	}
	return nil
}

// quiet takes what net/http has to say of connections, which is mostly the noise
// of port scans and probes, and says it only to those who ask for details.
type quiet struct{ logr.Logger }

func (q quiet) Write(p []byte) (int, error) {
	q.V(1).Info(string(p))
	return len(p), nil
}
