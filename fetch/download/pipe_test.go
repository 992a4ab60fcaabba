// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download_test

import (
	"context"
	"errors"
	"net"
	"sync"
)

// network is a listener, and the dialer of its connections, in memory: time passes at once in a bubble of testing/synctest.
type network struct {
	connections chan net.Conn
	closed      chan struct{}
	once        sync.Once
}

func newNetwork() *network {
	return &network{connections: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to the listener, whatever the address is.
func (n *network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
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
func (n *network) Accept() (net.Conn, error) {
	select {
	case connection := <-n.connections:
		return connection, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

// Addr implements net.Listener.
func (n *network) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
