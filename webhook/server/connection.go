// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// listener accepts TLS connections. The handshake does not run in Accept, so that a slow
// client does not delay others.
type listener struct {
	*limitedListener
	config *tls.Config
	server *Server
}

func (s *Server) listener(raw net.Listener) *listener {
	return &listener{limitedListener: limited(raw, s.open), config: s.tlsConfig(), server: s}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.accept()
	if err != nil {
		return nil, err
	}
	secure := tls.Server(c.raw, l.config)
	c.Conn = secure
	return &tlsConn{conn: c, tls: secure, server: l.server}, nil
}

// LimitListener returns a listener with at most so many open connections. When there are as
// many, a new one takes the place of the oldest one of the source that has the most. It is for
// small servers whose clients try again, such as those of probes and metrics. port is a label
// of the metrics about it.
func LimitListener(raw net.Listener, port string, most int) net.Listener {
	return limited(raw, newConnections(port, most))
}

type limitedListener struct {
	net.Listener
	open   *connections
	closed chan struct{}
	close  sync.Once
}

func limited(raw net.Listener, open *connections) *limitedListener {
	return &limitedListener{Listener: raw, open: open, closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	c, err := l.accept()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// accept returns a new connection. If there are too many, it waits until another one has ended.
func (l *limitedListener) accept() (*conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err // net/http tries again if there are too many open files.
	}
	c := newConn(raw, l.open)
	if !l.open.admit(c, l.closed) {
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// tlsConn is a connection whose first request may come late.
//
// net/http gives the headers of the first request ReadHeaderTimeout from the moment
// when the connection is accepted. A client that opens connections before it needs
// them, as Go's does when many requests start at once, may keep one unused for longer.
// It would be closed, perhaps just as the client begins to use it (see
// Options.IdleTimeout for the consequence). A tlsConn that has not been used may be idle
// for as long as any other, and ReadHeaderTimeout starts with its first byte.
type tlsConn struct {
	*conn
	tls    *tls.Conn
	server *Server
	begun  bool
}

func (c *tlsConn) Read(p []byte) (int, error) {
	if c.begun {
		n, err := c.conn.Read(p)
		if n > 0 && c.phase() == idle {
			c.enter(reading)
		}
		return n, err
	}
	c.begun = true
	n, err := c.readFirst(p)
	if err != nil {
		c.server.log.V(1).Info("A connection ended before its first request", "remote", c.RemoteAddr().String(), "reason", err.Error())
	}
	return n, err
}

func (c *tlsConn) readFirst(p []byte) (int, error) {
	if err := c.handshake(); err != nil {
		return 0, fmt.Errorf("TLS handshake: %w", err)
	}
	opts := &c.server.opts
	if err := c.SetReadDeadline(time.Now().Add(opts.IdleTimeout)); err != nil {
		return 0, err
	}
	n, err := c.conn.Read(p)
	if err != nil {
		return n, err
	}
	c.enter(reading)
	return n, c.SetReadDeadline(time.Now().Add(opts.ReadHeaderTimeout))
}

// handshake runs the handshake unless it has been run.
func (c *tlsConn) handshake() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.server.opts.ReadHeaderTimeout)
	defer cancel()
	return c.tls.HandshakeContext(ctx)
}

// ConnectionState returns the state after the handshake. net/http makes it the TLS of
// each Request, before it reads the first one.
func (c *tlsConn) ConnectionState() tls.ConnectionState {
	_ = c.handshake() // Read returns the same error.
	return c.tls.ConnectionState()
}

type connKey struct{}

// withConn is the ConnContext of the http.Server.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c.(*tlsConn).conn)
}

// connOf returns the connection of a request.
func connOf(r *http.Request) *conn { return r.Context().Value(connKey{}).(*conn) }
