// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/modelbox-operator/modelbox-operator/test/certificates"
)

// pipes is a listener of connections in memory, on which time can be made up.
type pipes struct {
	dialed chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialed:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.dialed <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// bubble is a server in a bubble of made-up time.
type bubble struct {
	*testing.T
	*Server
	pipes  *pipes
	stop   context.CancelFunc
	ended  chan error
	client *http.Client
	// connected are the clients' ends of the connections from an address: see connect.
	connected []net.Conn
}

// loadedOnce is a certificate for all bubbles: each watcher holds one of the few
// inotify instances of a machine until it has been started and ended.
var loadedOnce = sync.OnceValues(func() (*certwatcher.CertWatcher, error) {
	dir, err := os.MkdirTemp("", "server")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cert, key := certificates.New("here", 1)
	crtFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if err := errors.Join(os.WriteFile(crtFile, cert, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
		return nil, err
	}
	return certwatcher.New(crtFile, keyFile)
})

// inBubble runs test with a server that has the default timeouts, and whose time
// passes only when everything waits.
func inBubble(t *testing.T, opts Options, handlers map[string]http.Handler, test func(*bubble)) {
	t.Helper()
	watcher, err := loadedOnce()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{make(chan net.Conn), make(chan struct{})}
		s := New(opts)
		s.certificate.watcher.Store(watcher)
		for path, handler := range handlers {
			s.Register(path, handler)
		}
		ctx, cancel := context.WithCancel(t.Context())
		transport := &http.Transport{
			DialContext: p.dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, IdleConnTimeout: 90 * time.Second,
		}
		b := &bubble{T: t, Server: s, pipes: p, stop: cancel, ended: make(chan error, 1), client: &http.Client{Transport: transport}}
		go func() { b.ended <- s.serve(ctx, p) }()
		synctest.Wait()
		test(b)
		transport.CloseIdleConnections()
		cancel()
		if err := <-b.ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

// raw is a connection after its handshake.
func (b *bubble) raw() *tls.Conn {
	b.Helper()
	plain, err := b.pipes.dial(b.Context(), "", "")
	if err != nil {
		b.Fatal(err)
	}
	// In TLS 1.3 the server would wait for its tickets to be read.
	conn := tls.Client(plain, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err := conn.Handshake(); err != nil {
		b.Fatal(err)
	}
	return conn
}

// write sends text on a connection.
func (b *bubble) write(conn net.Conn, text string) {
	b.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		b.Fatal(err)
	}
}

// cutAfter reads what comes until the connection ends, and how long that took.
func (b *bubble) cutAfter(conn net.Conn) (string, time.Duration) {
	start := time.Now()
	text, _ := io.ReadAll(conn)
	return string(text), time.Since(start).Round(time.Second)
}

// endsAfter waits for the end of the server. Two ends of a pipe that say good-bye to
// each other at once, as TLS does, wait for each other for up to 5 s: a pipe
// has no room of its own.
func (b *bubble) endsAfter(want time.Duration) {
	b.Helper()
	start := time.Now()
	err := <-b.ended
	b.ended <- err
	if took := time.Since(start).Round(time.Second); took < want || took > want+5*time.Second || err != nil {
		b.Errorf("ended after %v (%v), want %v", took, err, want)
	}
}

// get sends a request and returns whether the answer closes the connection.
func (b *bubble) get(path string) (code int, closes bool) {
	b.Helper()
	r, err := b.client.Get("https://webhook.test" + path)
	if err != nil {
		b.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	r.Body.Close()
	return r.StatusCode, r.Close
}

var hello = map[string]http.Handler{"/hello": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if readBody(w, r) {
		_, _ = io.WriteString(w, "hello")
	}
})}

const helloRequest = "GET /hello HTTP/1.1\r\nHost: webhook.test\r\n\r\n"

func TestTimeouts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		send   string
		after  time.Duration
		answer string
	}{
		"no request":             {"", 120 * time.Second, ""},
		"headers that stop":      {"POST /hello HT", 5 * time.Second, "HTTP/1.1 400 "},
		"a body that stops":      {"POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf", 10 * time.Second, "HTTP/1.1 408 "},
		"idle after its request": {helloRequest, 120 * time.Second, "HTTP/1.1 200 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, Options{}, hello, func(b *bubble) {
				conn := b.raw()
				b.write(conn, tc.send)
				text, after := b.cutAfter(conn)
				if after != tc.after || !strings.HasPrefix(text, tc.answer) || (tc.answer == "") != (text == "") {
					b.Errorf("cut after %v with %q, want %v and %q", after, text, tc.after, tc.answer)
				}
			})
		})
	}
	t.Run("no handshake", func(t *testing.T) {
		t.Parallel()
		inBubble(t, Options{}, hello, func(b *bubble) {
			conn, err := b.pipes.dial(b.Context(), "", "")
			if err != nil {
				b.Fatal(err)
			}
			if _, after := b.cutAfter(conn); after != 5*time.Second {
				b.Errorf("cut after %v", after)
			}
		})
	})
}

// TestSpareConnection: a client may open a connection ahead of need, and use it much
// later than the time that headers have.
func TestSpareConnection(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, hello, func(b *bubble) {
		conn := b.raw()
		time.Sleep(100 * time.Second)
		b.write(conn, "P")
		time.Sleep(3 * time.Second)
		b.write(conn, "OST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n")
		time.Sleep(3 * time.Second)
		b.write(conn, "x")
		if text, after := b.cutAfter(conn); !strings.HasPrefix(text, "HTTP/1.1 200 ") || after != 120*time.Second {
			b.Errorf("answered %q, cut after %v", text, after)
		}
	})
}

func TestDrain(t *testing.T) {
	t.Parallel()
	opts := Options{Drain: 15 * time.Second, Linger: 80 * time.Second, Grace: 10 * time.Second}
	for name, test := range map[string]func(b *bubble){
		"no connection is left": func(b *bubble) {
			b.stop()
			b.endsAfter(15 * time.Second)
		},
		"says so at once and stays healthy": func(b *bubble) {
			if err := b.Ready(nil); err != nil {
				b.Errorf("not ready before: %v", err)
			}
			b.stop()
			synctest.Wait()
			if err := b.Ready(nil); err == nil || !strings.Contains(err.Error(), "draining") {
				b.Errorf("Ready: %v", err)
			}
			if err := b.Healthy(nil); err != nil {
				b.Errorf("Healthy: %v", err)
			}
			b.endsAfter(15 * time.Second)
			if b.Ready(nil) == nil || b.Healthy(nil) == nil {
				b.Error("ready or healthy after the end")
			}
		},
		"answers on old and new connections, and closes them": func(b *bubble) {
			if code, closes := b.get("/hello"); code != 200 || closes {
				b.Errorf("before: %d, closes %v", code, closes)
			}
			b.stop()
			for range 3 {
				time.Sleep(4 * time.Second)
				if code, closes := b.get("/hello"); code != 200 || !closes {
					b.Errorf("during: %d, closes %v", code, closes)
				}
			}
			b.endsAfter(3 * time.Second)
		},
		"answers that are not an admission close the connection as well": func(b *bubble) {
			b.stop()
			synctest.Wait()
			if code, closes := b.get("/nowhere"); code != 404 || !closes {
				b.Errorf("during: %d, closes %v", code, closes)
			}
		},
		"an idle connection is left until its client closes it": func(b *bubble) {
			b.get("/hello")
			b.stop()
			b.endsAfter(90 * time.Second)
		},
		"an idle connection may still be used after the drain": func(b *bubble) {
			b.get("/hello")
			b.stop()
			time.Sleep(60 * time.Second)
			if _, err := b.pipes.dial(b.Context(), "", ""); err == nil {
				b.Error("a new connection was accepted")
			}
			if code, closes := b.get("/hello"); code != 200 || !closes {
				b.Errorf("late: %d, closes %v", code, closes)
			}
			b.endsAfter(0)
		},
		"a connection that was never used may be, too": func(b *bubble) {
			conn := b.raw()
			b.stop()
			time.Sleep(60 * time.Second)
			b.write(conn, helloRequest)
			if text, after := b.cutAfter(conn); !strings.HasPrefix(text, "HTTP/1.1 200 ") || !strings.Contains(text, "Connection: close") || after != 0 {
				b.Errorf("answered %q, cut after %v", text, after)
			}
			b.endsAfter(0)
		},
		"a client that keeps its connections longer is cut": func(b *bubble) {
			used, unused := b.raw(), b.raw()
			b.write(used, helloRequest)
			for _, conn := range []net.Conn{used, unused} {
				go func() { _, _ = io.Copy(io.Discard, conn) }()
			}
			b.stop()
			b.endsAfter(95 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, opts, hello, test)
		})
	}
}

// TestGrace: work in flight at the end may take so long and no longer.
func TestGrace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		work time.Duration
		took time.Duration
		code int
	}{
		"work that ends in the drain": {5 * time.Second, 15 * time.Second, 200},
		"work that ends later":        {25 * time.Second, 25 * time.Second, 200},
		"work that ends in the grace": {65 * time.Second, 65 * time.Second, 200},
		"work that takes too long":    {99 * time.Second, 75 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := map[string]http.Handler{"/slow": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-time.After(tc.work):
					w.WriteHeader(http.StatusOK)
				case <-r.Context().Done():
				}
			})}
			opts := Options{Drain: 15 * time.Second, Linger: 40 * time.Second, Grace: 20 * time.Second, WriteTimeout: 2 * time.Minute}
			inBubble(t, opts, slow, func(b *bubble) {
				code := make(chan int, 1)
				go func() {
					r, err := b.client.Get("https://webhook.test/slow")
					if err != nil {
						code <- 0
						return
					}
					r.Body.Close()
					if !r.Close {
						b.Error("the answer does not ask to close the connection, though it began before the drain")
					}
					code <- r.StatusCode
				}()
				synctest.Wait()
				b.stop()
				b.endsAfter(tc.took)
				if got := <-code; got != tc.code {
					b.Errorf("answered %d, want %d", got, tc.code)
				}
			})
		})
	}
}
