// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	// bodyTime is how long the body of a request may take from the end of its headers on, and
	// turnTime the part of it that a large one may wait for its turn: the timeout of the webhook
	// configurations.
	bodyTime, turnTime = 10 * time.Second, 5 * time.Second
	// answerTime is how long a client may take to read an answer, after bodyTime.
	answerTime = 5 * time.Second
	// maxBody is the limit of controller-runtime. It has room for the two objects of an update.
	maxBody = 7 << 20
	// largeBody is the size from which on bodies share a budget of memory: together they have at
	// most maxBody, because decoding takes a multiple of that. Few objects in use have so many
	// bytes.
	largeBody = 64 << 10
)

// server is controller-runtime's webhook server, which in addition loses no admission request
// when it ends, and bounds what the bodies of requests take.
//
// The API server does not repeat a POST whose connection was closed, and the request of a user
// fails. The stock server closes every idle connection when it ends, also one on which a request
// is on its way. This one becomes unready first and keeps serving for a while, until the Service
// has moved its endpoints; each response then asks the client to close the connection, so that
// none is left that is in use.
type server struct {
	webhook.Server
	drain             time.Duration
	started, draining atomic.Bool
	large             *semaphore.Weighted
	trace             func(path string, hook http.Handler) http.Handler
}

func newServer(o *options) (*server, error) {
	host, port, err := net.SplitHostPort(o.address)
	if err != nil {
		return nil, fmt.Errorf("--webhook-bind-address: %w", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("--webhook-bind-address: %w", err)
	}
	options, err := o.tls.webhooks()
	if err != nil {
		return nil, err
	}
	return &server{
		Server: webhook.NewServer(webhook.Options{Host: host, Port: int(number), CertDir: o.certDir, TLSOpts: options}),
		drain:  o.drain, large: semaphore.NewWeighted(maxBody), trace: o.tracing.Handler,
	}, nil
}

// Start implements webhook.Server: it serves until ctx is done, and then drains.
func (s *server) Start(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		s.draining.Store(true)
		time.AfterFunc(s.drain, stop)
	})()
	return s.Server.Start(serving)
}

// ready is the readiness check.
func (s *server) ready(r *http.Request) error {
	if s.draining.Load() {
		return errors.New("the webhook server is draining")
	}
	// It opens a connection, which --client-ca refuses with a line in the log: once is enough.
	if !s.started.Load() {
		if err := s.StartedChecker()(r); err != nil {
			return err
		}
		s.started.Store(true)
	}
	return nil
}

// Register implements webhook.Server.
func (s *server) Register(path string, hook http.Handler) {
	hook = s.trace(path, hook)
	s.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		// An error of the two would be one of the connection, and the next read has it too.
		connection, now := http.NewResponseController(w), time.Now()
		_ = connection.SetReadDeadline(now.Add(bodyTime))
		_ = connection.SetWriteDeadline(now.Add(bodyTime + answerTime))
		release, err := s.turn(r)
		if err != nil {
			// Upon which the API server tries again, as long as its own timeout lasts.
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many large requests in flight; retry: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer release()
		// net/http closes the connection if the body that it knows was not read to its end.
		r = r.WithContext(r.Context())
		r.Body = &body{ReadCloser: http.MaxBytesReader(w, r.Body, maxBody), connection: connection}
		hook.ServeHTTP(w, r)
	}))
}

// turn waits until there is memory for the body of a request.
func (s *server) turn(r *http.Request) (release func(), err error) {
	size := r.ContentLength
	if size < 0 || size > maxBody {
		size = maxBody
	}
	if size < largeBody {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), turnTime)
	defer cancel()
	return func() { s.large.Release(size) }, s.large.Acquire(ctx, size)
}

// body is the body of a request, with a deadline.
type body struct {
	io.ReadCloser
	connection *http.ResponseController
	begun      bool
}

// Read implements io.Reader. The stock transport takes for YAML what does not begin as an object
// in JSON, and decoding that takes many times the memory: it is an error here.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if text := bytes.TrimLeft(p[:n], " \t\r\n"); !b.begun && len(text) > 0 {
		if text[0] != '{' {
			return 0, errors.New("the body is not an object in JSON")
		}
		b.begun = true
	}
	if err == io.EOF {
		// Without a deadline the connection can be used again.
		_ = b.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}

// tlsOptions are the flags of TLS.
type tlsOptions struct {
	minVersion  uint16
	clientCA    string
	clientNames []string
}

func (o *tlsOptions) addFlags(flags *flag.FlagSet) {
	flags.Func("tls-min-version", "minimum TLS version of clients, 1.2 or 1.3 (default 1.2)", func(version string) error {
		known := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
		if o.minVersion = known[version]; o.minVersion == 0 {
			return errors.New("must be 1.2 or 1.3")
		}
		return nil
	})
	flags.StringVar(&o.clientCA, "client-ca", "", "file of CA certificates; if set, a client of the webhooks must present a certificate issued by one of them")
	flags.Func("client-ca-allowed-names", "comma-separated common names of the client certificates that --client-ca accepts; all by default", func(names string) error {
		o.clientNames = strings.Split(names, ",")
		return nil
	})
}

// configure sets the versions and the cipher suites that a server accepts: those with forward
// secrecy and AEAD, which are all that TLS 1.3 has.
func (o *tlsOptions) configure(config *tls.Config) {
	config.MinVersion = max(o.minVersion, tls.VersionTLS12)
	config.CipherSuites = []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
	// HTTP/2 would send all requests of an API server to one replica.
	config.NextProtos = []string{"http/1.1"}
}

// webhooks returns the options of the webhook server.
func (o *tlsOptions) webhooks() ([]func(*tls.Config), error) {
	if o.clientCA == "" && len(o.clientNames) > 0 {
		return nil, errors.New("--client-ca-allowed-names has no effect without --client-ca: set both, or none")
	}
	return o.withClientCA("--client-ca", o.clientCA, o.clientNames)
}

// withClientCA returns the options of a server that ends the handshake with a client without a
// certificate of a CA in a file, if there is one, and with one of the given common names, if
// there are any.
func (o *tlsOptions) withClientCA(name, file string, commonNames []string) ([]func(*tls.Config), error) {
	options := []func(*tls.Config){o.configure}
	if file == "" {
		return options, nil
	}
	pem, err := os.ReadFile(file) //nolint:gosec // The file is a flag of who starts the process.
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s has no certificate in PEM", name, file)
	}
	return append(options, func(config *tls.Config) {
		config.ClientCAs, config.ClientAuth = pool, tls.RequireAndVerifyClientCert
		config.VerifyConnection = func(state tls.ConnectionState) error {
			if client := state.PeerCertificates[0].Subject.CommonName; len(commonNames) > 0 && !slices.Contains(commonNames, client) {
				return fmt.Errorf("the common name of the client's certificate is %q: %s is expected", client, strings.Join(commonNames, " or "))
			}
			return nil
		}
	}), nil
}

// secureMetrics sets how /metrics is served by TLS.
func (o *options) secureMetrics() (err error) {
	if !o.metrics.SecureServing && (o.metrics.CertDir != "" || o.metricsClientCA != "") {
		return errors.New("--metrics-cert-path and --metrics-client-ca have no effect without --metrics-secure")
	}
	o.metrics.TLSOpts, err = o.tls.withClientCA("--metrics-client-ca", o.metricsClientCA, nil)
	return err
}
