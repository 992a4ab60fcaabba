// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pipe is a network in memory for tests, which run in a bubble of testing/synctest: time there passes at once.
package pipe

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Network is a listener, and the dialer of its connections.
type Network struct {
	connections chan net.Conn
	closed      chan struct{}
	once        sync.Once
}

// New returns a network.
func New() *Network {
	return &Network{connections: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to the listener, whatever the address is.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.connections <- server:
		return client, nil
	case <-n.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case connection := <-n.connections:
		return connection, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *Network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

// Addr implements net.Listener.
func (n *Network) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
