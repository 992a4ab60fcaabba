// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// from is the server's end of a pipe that comes from an address.
type from struct {
	net.Conn
	source int
}

func (f from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(address(f.source), 1234))
}

// connect makes a connection from an address, and does not wait until it is accepted.
func (b *bubble) connect(source int) net.Conn {
	here, there := net.Pipe()
	b.connected = append(b.connected, here)
	go func() {
		select {
		case b.pipes.dialed <- from{there, source}:
		case <-b.pipes.closed:
			there.Close()
		}
	}()
	synctest.Wait()
	return here
}

// secure is TLS on a connection, after the handshake.
func (b *bubble) secure(plain net.Conn) net.Conn {
	b.Helper()
	conn := tls.Client(plain, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err := conn.Handshake(); err != nil {
		b.Fatal(err)
	}
	return conn
}

// used is a connection on which a request has been completed.
func (b *bubble) used(source int) net.Conn {
	b.Helper()
	conn := b.secure(b.connect(source))
	b.write(conn, helloRequest)
	b.answered(conn)
	return conn
}

// answered reads the answer to helloRequest.
func (b *bubble) answered(conn net.Conn) {
	b.Helper()
	var got strings.Builder
	for buf := make([]byte, 1000); !strings.HasSuffix(got.String(), "hello"); {
		n, err := conn.Read(buf)
		if got.Write(buf[:n]); err != nil {
			b.Fatalf("%q, %v", got.String(), err)
		}
	}
	if !strings.HasPrefix(got.String(), "HTTP/1.1 200 ") {
		b.Errorf("answered %q", got.String())
	}
	synctest.Wait()
}

// open reports which connections the server has not closed.
func (b *bubble) open(conns ...net.Conn) string {
	b.Helper()
	synctest.Wait()
	var open strings.Builder
	for i, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(time.Nanosecond))
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			open.WriteByte(byte('0' + i))
		}
		_ = conn.SetReadDeadline(time.Time{})
	}
	return open.String()
}

// inWork answers when it is closed.
type inWork chan struct{}

func (w inWork) ServeHTTP(rw http.ResponseWriter, _ *http.Request) {
	<-w
	_, _ = io.WriteString(rw, "hello")
}

// TestMaxConnections: who has to go when a client of a server with four connections opens another.
func TestMaxConnections(t *testing.T) {
	t.Parallel()
	const slowBody = "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf"
	for name, test := range map[string]func(b *bubble, work inWork){
		"one without a handshake": func(b *bubble, _ inWork) {
			first, a, c, d := b.connect(1), b.used(1), b.used(1), b.used(1)
			time.Sleep(time.Second)
			last := b.used(1)
			if got := b.open(first, a, c, d, last); got != "1234" {
				b.Errorf("open: %s", got)
			}
		},
		"one that sent no request": func(b *bubble, _ inWork) {
			a, c, unused, d := b.used(1), b.used(1), b.secure(b.connect(1)), b.used(1)
			time.Sleep(time.Second)
			last := b.used(1)
			if got := b.open(a, c, unused, d, last); got != "0134" {
				b.Errorf("open: %s", got)
			}
		},
		"one that sends headers slowly": func(b *bubble, _ inWork) {
			a, c, d, slow := b.used(1), b.used(1), b.used(1), b.secure(b.connect(1))
			b.write(slow, "POST /hello HT")
			time.Sleep(time.Second)
			last := b.used(1)
			if got := b.open(a, c, d, slow, last); got != "0124" {
				b.Errorf("open: %s", got)
			}
		},
		"one that sends a later body slowly": func(b *bubble, _ inWork) {
			a, slow, c, d := b.used(1), b.used(1), b.used(1), b.used(1)
			b.write(slow, slowBody)
			time.Sleep(time.Second)
			last := b.used(1)
			if got := b.open(a, slow, c, d, last); got != "0234" {
				b.Errorf("open: %s", got)
			}
		},
		"one that does not read its answer": func(b *bubble, _ inWork) {
			a, c, slow, d := b.used(1), b.used(1), b.used(1), b.used(1)
			b.write(slow, helloRequest)
			time.Sleep(time.Second)
			last := b.used(1)
			if got := b.open(a, c, d, last); got != "0123" {
				b.Errorf("open: %s", got)
			}
			if text, _ := b.cutAfter(slow); text != "" {
				b.Errorf("a client that did not read has %q", text)
			}
		},
		"the one that was idle for the longest": func(b *bubble, _ inWork) {
			a, c, d, e := b.used(1), b.used(1), b.used(1), b.used(1)
			for _, conn := range []net.Conn{c, a, e} { // Not d.
				time.Sleep(time.Second)
				b.write(conn, helloRequest)
				b.answered(conn)
			}
			time.Sleep(time.Second)
			last := b.used(1)
			if got := b.open(a, c, d, e, last); got != "0134" {
				b.Errorf("open: %s", got)
			}
		},
		"one of the source that has the most": func(b *bubble, _ inWork) {
			spare := b.secure(b.connect(1))
			time.Sleep(time.Second)
			var many []net.Conn
			for range 3 {
				many = append(many, b.secure(b.connect(2)))
				time.Sleep(time.Second)
			}
			last := b.used(1)
			if got := b.open(spare, many[0], many[1], many[2], last); got != "0234" {
				b.Errorf("open: %s", got)
			}
		},
		"one of another source than that which completes requests": func(b *bubble, _ inWork) {
			a, c := b.used(1), b.used(1)
			b.write(c, helloRequest)
			b.answered(c)
			time.Sleep(time.Second)
			d, e := b.used(2), b.used(3)
			time.Sleep(time.Second)
			last := b.used(4)
			if got := b.open(a, c, d, e, last); got != "0134" {
				b.Errorf("open: %s", got)
			}
		},
		"none whose request is worked on": func(b *bubble, work inWork) {
			var conns []net.Conn
			for range 4 {
				conn := b.secure(b.connect(1))
				b.write(conn, "GET /work HTTP/1.1\r\nHost: a\r\n\r\n")
				conns = append(conns, conn)
			}
			time.Sleep(time.Second)
			waiting := b.connect(2)
			time.Sleep(5 * time.Second)
			if got := b.open(waiting); got != "0" {
				b.Error("the new connection was not left waiting")
			}
			close(work)
			for _, conn := range conns {
				b.answered(conn)
			}
			time.Sleep(time.Second)
			conn := b.secure(waiting)
			b.write(conn, helloRequest)
			b.answered(conn)
		},
		"none that is new": func(b *bubble, _ inWork) {
			conns := []net.Conn{b.connect(1), b.connect(1), b.connect(1), b.connect(1)}
			start := time.Now()
			b.secure(b.connect(1))
			if got := time.Since(start); got < settled || got > 2*settled {
				b.Errorf("a new connection waited for %v", got)
			}
			if got := len(b.open(conns...)); got != 3 {
				b.Errorf("%d are open", got)
			}
		},
		"the drain does not wait for room": func(b *bubble, work inWork) {
			for range 4 {
				b.write(b.secure(b.connect(1)), "GET /work HTTP/1.1\r\nHost: a\r\n\r\n")
			}
			waiting := b.connect(1)
			b.stop()
			if _, after := b.cutAfter(waiting); after != 0 {
				b.Errorf("cut after %v", after)
			}
			close(work)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var work inWork // It is of the bubble.
			handlers := map[string]http.Handler{"/hello": hello["/hello"], "/work": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { work.ServeHTTP(w, r) })}
			inBubble(t, Options{MaxConnections: 4, Linger: 10 * time.Second, Grace: 10 * time.Second}, handlers, func(b *bubble) {
				work = make(inWork)
				test(b, work)
				// As the last, the server would write to clients that do not read, which takes
				// locks in which made-up time does not pass.
				for _, conn := range b.connected {
					conn.Close()
				}
			})
		})
	}
}
