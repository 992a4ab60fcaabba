// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/go-logr/logr"
)

// listener accepts TLS connections. The handshake does not run in Accept, so that a slow
// client does not delay others.
type listener struct {
	net.Listener
	config *tls.Config
	opts   *Options
	log    logr.Logger
}

func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err // net/http tries again if there are too many open files.
	}
	return &conn{Conn: tls.Server(raw, l.config), listener: l}, nil
}

// conn is a connection whose first request may come late.
//
// net/http gives the headers of the first request ReadHeaderTimeout from the moment
// when the connection is accepted. A client that opens connections before it needs
// them, as Go's does when many requests start at once, may keep one unused for longer.
// It would be closed, perhaps just as the client begins to use it (see
// Options.IdleTimeout for the consequence). A conn that has not been used may be idle
// for as long as any other, and ReadHeaderTimeout starts with its first byte.
type conn struct {
	*tls.Conn
	listener *listener
	begun    bool
}

func (c *conn) Read(p []byte) (int, error) {
	if c.begun {
		return c.Conn.Read(p)
	}
	c.begun = true
	n, err := c.readFirst(p)
	if err != nil {
		c.listener.log.V(1).Info("A connection ended before its first request", "remote", c.RemoteAddr().String(), "reason", err.Error())
	}
	return n, err
}

func (c *conn) readFirst(p []byte) (int, error) {
	if err := c.handshake(); err != nil {
		return 0, fmt.Errorf("TLS handshake: %w", err)
	}
	opts := c.listener.opts
	if err := c.SetReadDeadline(time.Now().Add(opts.IdleTimeout)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if err != nil {
		return n, err
	}
	return n, c.SetReadDeadline(time.Now().Add(opts.ReadHeaderTimeout))
}

// handshake runs the handshake unless it has been run.
func (c *conn) handshake() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.listener.opts.ReadHeaderTimeout)
	defer cancel()
	return c.HandshakeContext(ctx)
}

// ConnectionState returns the state after the handshake. net/http makes it the TLS of
// each Request, before it reads the first one.
func (c *conn) ConnectionState() tls.ConnectionState {
	_ = c.handshake() // Read returns the same error.
	return c.Conn.ConnectionState()
}
