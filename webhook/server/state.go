// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"
)

// conn is a connection among others of which it may have to make room.
type conn struct {
	// Conn is the connection, or TLS on it.
	net.Conn
	raw      net.Conn
	pool     *connections
	source   netip.Addr
	accepted time.Time
	// from counts what comes from the same source.
	from  *tally
	state atomic.Int64
	// held is the memory in bytes that the body or the answer of the current request has
	// from the server's budget.
	held atomic.Int64
	// served reports whether a request on this connection has been answered with 200;
	// answered, whether the current one has.
	served, answered atomic.Bool
	// gone is closed when the server disconnects the connection.
	gone chan struct{}
}

// phase is what a connection does at the moment.
type phase int64

const (
	// unused: no byte of a request has come; the handshake may not be over.
	unused phase = iota
	// idle: a request has been answered, and the next one has not begun.
	idle
	// reading: a request has begun, and its body is not complete.
	reading
	// working: a complete request waits for its turn or is being answered.
	working
	// writing: an answer is complete and is being sent.
	writing
	// disconnected: the server has closed the connection to make room.
	disconnected

	phaseBits = 3
)

func pack(p phase, since time.Time) int64 { return since.UnixMicro()<<phaseBits | int64(p) }

func unpack(state int64) (phase, time.Time) {
	return phase(state & (1<<phaseBits - 1)), time.UnixMicro(state >> phaseBits)
}

func newConn(raw net.Conn, pool *connections) *conn {
	c := &conn{Conn: raw, raw: raw, pool: pool, source: sourceOf(raw.RemoteAddr()), accepted: time.Now(), gone: make(chan struct{})}
	c.state.Store(pack(unused, c.accepted))
	return c
}

// sourceOf returns the address that a connection comes from, without its port.
func sourceOf(addr net.Addr) netip.Addr {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// phase returns the phase that the connection is in.
func (c *conn) phase() phase {
	current, _ := unpack(c.state.Load())
	return current
}

// enter begins a phase. It returns false if the connection is disconnected.
func (c *conn) enter(p phase) bool {
	for {
		old := c.state.Load()
		current, _ := unpack(old)
		if current == disconnected {
			return false
		}
		if current == p || c.state.CompareAndSwap(old, pack(p, time.Now())) {
			return true
		}
	}
}

// disconnect closes the connection at once if it is still in the given state: a request that
// has become complete since then is not lost.
func (c *conn) disconnect(state int64) bool {
	if !c.state.CompareAndSwap(state, pack(disconnected, time.Now())) {
		return false
	}
	close(c.gone)
	// Not by TLS, which would wait for the client to read an alert.
	_ = c.raw.Close()
	return true
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.pool.remove(c)
	return c.Conn.Close()
}

// changed is called with the state that the connection has for net/http.
func (c *conn) changed(state http.ConnState) {
	if state != http.StateIdle {
		return
	}
	if c.answered.Swap(false) {
		c.served.Store(true)
		c.from.served.Add(1)
	}
	c.enter(idle)
}
