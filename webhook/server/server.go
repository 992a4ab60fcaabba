// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Server serves webhooks over TLS 1.2 or later and HTTP/1.1. HTTP/2 is left out
// because the API server does not use it with webhooks: it would send all requests to
// one replica.
type Server struct {
	opts        Options
	mux         *http.ServeMux
	log         logr.Logger
	certificate certificate
	clientCA    *ClientCA
	state       atomic.Int32
	inFlight    atomic.Int64
	// bytes is the memory that requests hold of the budget of small bodies and answers.
	bytes atomic.Int64
	// small and large are the requests that are worked on, or wait for it, by the size of
	// their bodies.
	small, large *queue
	open         *connections
	connections  sync.WaitGroup
	// addr is the address that the server listens on, for tests, which use any free
	// port.
	addr atomic.Pointer[net.Addr]
}

var _ webhook.Server = (*Server)(nil)

const (
	starting int32 = iota
	serving
	draining
	stopped
)

// New returns a server. It does nothing until Start.
func New(opts Options) *Server {
	opts.fill()
	logger := ctrllog.Log.WithName("webhook-server")
	return &Server{
		opts: opts, mux: http.NewServeMux(), log: logger,
		small:       newQueue(max(opts.MaxBytesInFlight/16, smallBody), opts.MaxInFlight),
		large:       newQueue(max(opts.MaxBytesInFlight/4, opts.MaxBodyBytes), opts.MaxInFlight),
		open:        newConnections("webhook", opts.MaxConnections),
		certificate: certificate{dir: opts.CertDir, log: logger, retry: retryCertificate, poll: pollCertificate, expiry: certificateExpiry},
	}
}

// Register serves hook at path. It must be called before Start, and panics if the path
// is taken.
func (s *Server) Register(path string, hook http.Handler) { s.mux.Handle(path, hook) }

// WebhookMux returns the handlers by their paths.
func (s *Server) WebhookMux() *http.ServeMux { return s.mux }

// NeedLeaderElection returns false: every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until ctx is done, then drains and returns nil. It returns an error
// at once if it cannot listen, or cannot read Options.ClientCA.
func (s *Server) Start(ctx context.Context) error {
	if s.opts.ClientCA != "" {
		var err error
		if s.clientCA, err = NewClientCA(s.opts.ClientCA, s.opts.ClientNames); err != nil {
			return err
		}
		go s.clientCA.Run(ctx)
	}
	raw, err := new(net.ListenConfig).Listen(ctx, "tcp", s.opts.Addr)
	if err != nil {
		return fmt.Errorf("listening for admission requests: %w", err)
	}
	s.addr.Store(new(raw.Addr()))
	s.log.Info("Listening", "addr", raw.Addr().String())
	go s.certificate.run(ctx)
	return s.serve(ctx, raw)
}

func (s *Server) serve(ctx context.Context, raw net.Listener) error {
	conns := s.listener(raw)
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
	if err := s.drain(server, conns, ended); err != nil {
		return fmt.Errorf("ending the webhook server: %w", err)
	}
	return nil
}

func (s *Server) httpServer() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:           http.HandlerFunc(s.serveLimited),
		Protocols:         protocols,
		ReadHeaderTimeout: s.opts.ReadHeaderTimeout,
		WriteTimeout:      s.opts.WriteTimeout,
		IdleTimeout:       s.opts.IdleTimeout,
		MaxHeaderBytes:    s.opts.MaxHeaderBytes,
		ConnState:         s.countConnections,
		ConnContext:       withConn,
		ErrorLog:          log.New(verboseLog{s.log}, "", 0),
	}
}

func (s *Server) tlsConfig() *tls.Config {
	config := &tls.Config{GetCertificate: s.certificate.get}
	s.opts.MinTLSVersion.Configure(config)
	if s.clientCA != nil {
		s.clientCA.Configure(config)
	}
	return config
}

// StartedChecker returns Ready: a server that listens without a certificate cannot be
// reached.
func (s *Server) StartedChecker() healthz.Checker { return s.Ready }

// Ready is a healthz.Checker: nil while the server listens with a certificate and
// does not drain.
func (s *Server) Ready(*http.Request) error {
	switch s.state.Load() {
	case starting:
		return errors.New("the webhook server is not listening yet")
	case serving:
		return s.certificate.loaded()
	case draining:
		return errors.New("the webhook server is draining")
	}
	return errors.New("the webhook server has stopped")
}

// Healthy is a healthz.Checker: nil unless the server has stopped. A restart would
// gain nothing for a server that waits for its certificate, or drains.
func (s *Server) Healthy(*http.Request) error {
	if s.state.Load() == stopped {
		return errors.New("the webhook server has stopped")
	}
	return nil
}

// verboseLog logs what net/http reports about connections, which is mostly the noise
// of port scans and probes, at verbosity 1.
type verboseLog struct{ logr.Logger }

func (l verboseLog) Write(p []byte) (int, error) {
	l.V(1).Info(string(p))
	return len(p), nil
}
