// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"time"
)

// Options configure a Server. The zero value of a bound means its default, but Drain,
// Linger and Grace are used as they are, zero included. DefaultOptions has a value for
// each that suits a cluster.
type Options struct {
	// Addr is the address to listen on, ":9443" by default.
	Addr string
	// CertDir holds tls.crt and tls.key, as a mounted Secret of type
	// kubernetes.io/tls does. They are read again when they change. While they
	// are missing, the server waits for them and is not ready: cert-manager may
	// be a moment later than the pod.
	CertDir string

	// MinTLSVersion is 1.2 by default, of which only the cipher suites with forward
	// secrecy and AEAD are accepted. A build that is restricted to FIPS 140-2 may not
	// speak 1.3.
	MinTLSVersion TLSVersion
	// ClientCA is a file of CA certificates in PEM. If it is set, only a client with a
	// certificate of one of them gets past the TLS handshake. It is read again when it
	// changes.
	ClientCA string
	// ClientNames are the common names of the certificates that are accepted; all, if
	// it is empty.
	ClientNames []string

	// MaxConnections bounds the open connections. When there are as many, a new one
	// takes the place of another: of one that never completed a request if there is
	// any, then of one whose client sends a request or reads an answer slowly, then
	// of one that is idle; in each case of the source that has the most of them, and
	// the oldest. One whose request is being worked on is never closed, nor one
	// that has come further within 250 ms. The source that has completed the most
	// requests keeps half of all connections. 1024 by default, of 30 KB each.
	MaxConnections int
	// MaxInFlight bounds the requests with a complete body that are worked on or wait
	// for it, of those with up to 256 KiB and of the larger ones each. One more is
	// answered 503 with Retry-After, upon which the API server tries again, as long as
	// the webhook's timeoutSeconds lasts. A source that has less than its share is
	// accepted nevertheless. 256 by default: with 0.1 ms of work each, that many are
	// done within 30 ms.
	MaxInFlight int
	// MaxBodyBytes bounds one request's body; a larger one is answered 413. By
	// default 7 MiB, as in controller-runtime: the API server reads at most 3 MiB
	// of an object from a client, and a review of an update holds two of them,
	// with less than 1 MiB of other things. (Two objects as etcd stores them
	// would make no more than 3 MiB.)
	MaxBodyBytes int64
	// MaxBytesInFlight bounds the memory of all bodies and answers together, without
	// the first 4 KiB of each body and of each answer. 32 MiB by default, of which
	//  - half are for bodies of up to 256 KiB that have come, and for answers. If they
	//    take more, the client that has been slow for the longest time is
	//    disconnected; a request is answered 503, as above, if none is slow.
	//  - a quarter, but at least MaxBodyBytes, is for larger bodies, which are read and
	//    worked on in turn, and have to arrive within a second and 8 MiB a second.
	// The bodies of up to 256 KiB that are worked on at the same time are a sixteenth,
	// but at least 256 KiB.
	MaxBytesInFlight int64
	// MaxHeaderBytes bounds a request's headers, 16 KiB by default; the API
	// server sends a few hundred bytes.
	MaxHeaderBytes int

	// ReadHeaderTimeout is the time for a TLS handshake, and then for the headers
	// of each request from its first byte on: 5 s by default.
	ReadHeaderTimeout time.Duration
	// ReadTimeout is the time for the body of a request, from the end of its
	// headers on: 10 s by default, which is also how long the API server waits for
	// a webhook whose timeoutSeconds is not set.
	ReadTimeout time.Duration
	// WriteTimeout is the time from the end of a request's headers to the end of
	// its answer: 15 s by default.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection may be without a request: 120 s by
	// default. It must be longer than the client's, which is 90 s in client-go. A
	// side that closes an idle connection can do so just as a request arrives. A
	// client knows that it closed the connection, and uses another one; if the
	// server closed it, the request is lost, and a POST is not repeated.
	IdleTimeout time.Duration

	// Drain, Linger and Grace are the three parts of a shutdown: see drain.go.
	// 15 s, 80 s and 10 s by default, so a pod needs 120 s of
	// terminationGracePeriodSeconds, and the manager a GracefulShutdownTimeout
	// not much below; the whole is rarely taken.
	Drain, Linger, Grace time.Duration
}

// DefaultOptions returns the options for a pod behind a Service, without CertDir.
func DefaultOptions() Options {
	o := Options{Drain: 15 * time.Second, Linger: 80 * time.Second, Grace: 10 * time.Second}
	o.fill()
	return o
}

func (o *Options) fill() {
	o.Addr = cmp.Or(o.Addr, ":9443")
	o.MaxConnections = cmp.Or(o.MaxConnections, 1024)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, 256)
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, 7<<20)
	o.MaxBytesInFlight = cmp.Or(o.MaxBytesInFlight, 32<<20)
	o.MaxHeaderBytes = cmp.Or(o.MaxHeaderBytes, 16<<10)
	o.ReadHeaderTimeout = cmp.Or(o.ReadHeaderTimeout, 5*time.Second)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 10*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 15*time.Second)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 120*time.Second)
}
