// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// listener hands out connections on which the first byte of a request has come,
// and not before.
//
// net/http starts the clock for the headers of a connection's first request when
// it is handed the connection. A client that opens connections ahead of need, as
// Go's does when many requests start at once, may keep one unused for much longer
// than headers should take; it would be cut, perhaps just as the client begins to
// use it (see Options.IdleTimeout for what that means). Waiting here, such a
// connection has the patience of any other idle one, and headers may be bounded
// tightly.
//
// listener also knows how many connections there are, of every sort.
type listener struct {
	net.Listener
	config *tls.Config
	opts   Options
	log    logr.Logger

	begun chan net.Conn // Connections with a request.
	gone  chan struct{} // Closed when no connection is left, after refuse.
	loop  sync.WaitGroup

	closed context.Context // Done when Close has been called.
	close  context.CancelFunc

	mu      sync.Mutex
	open    map[*conn]struct{}
	refused bool
}

func newListener(raw net.Listener, config *tls.Config, opts Options, log logr.Logger) *listener {
	l := &listener{
		Listener: raw, config: config, opts: opts, log: log,
		begun: make(chan net.Conn), gone: make(chan struct{}), open: map[*conn]struct{}{},
	}
	l.closed, l.close = context.WithCancel(context.Background())
	l.loop.Go(l.accept)
	return l
}

// Accept is for net/http.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.begun:
		return c, nil
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
}

// Close ends the listener, and the connections that have not been handed out.
func (l *listener) Close() error {
	l.refuse()
	l.close()
	return nil
}

// refuse takes no more connections. Those that there are go on, and gone is
// closed with the last of them.
func (l *listener) refuse() {
	// It may be closed already, which is as good.
	_ = l.Listener.Close()
	l.loop.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.refused {
		l.refused = true
		l.tell()
	}
}

// tell closes gone if the time has come. It runs under the lock, after a change
// of what it looks at, and that change happens once.
func (l *listener) tell() {
	if l.refused && len(l.open) == 0 {
		close(l.gone)
	}
}

func (l *listener) accept() {
	const shortest, longest = 5 * time.Millisecond, time.Second
	for pause := shortest; ; {
		raw, err := l.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of file descriptors, most likely: others must end first.
			l.log.Error(err, "A connection could not be accepted", "retryIn", pause)
			time.Sleep(pause)
			pause = min(2*pause, longest)
			continue
		}
		pause = shortest
		c := &conn{Conn: tls.Server(raw, l.config), listener: l}
		l.mu.Lock()
		l.open[c] = struct{}{}
		l.mu.Unlock()
		go l.await(c)
	}
}

// await hands c out when its first request begins.
func (l *listener) await(c *conn) {
	if err := l.begin(c); err != nil {
		l.log.V(1).Info("A connection ended before its first request", "remote", c.RemoteAddr().String(), "reason", err.Error())
		_ = c.Close()
		return
	}
	select {
	case l.begun <- c:
	case <-l.closed.Done():
		_ = c.Close()
	}
}

func (l *listener) begin(c *conn) error {
	ctx, cancel := context.WithTimeout(l.closed, l.opts.ReadHeaderTimeout)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS handshake: %w", err)
	}
	return c.readFirst(l.closed, l.opts.IdleTimeout)
}

// conn is a connection with the first byte of its first request.
type conn struct {
	*tls.Conn
	listener *listener
	first    []byte
}

// readFirst waits for the first byte, for as long as patience and ctx last.
func (c *conn) readFirst(ctx context.Context, patience time.Duration) error {
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Now()) })
	defer stop()
	c.first = make([]byte, 1)
	_, err := c.Conn.Read(c.first)
	return err // net/http sets a deadline of its own next.
}

func (c *conn) Read(p []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.first)
	c.first = c.first[n:]
	return n, nil
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.open[c]; ok {
		delete(l.open, c)
		l.tell()
	}
	return err
}
