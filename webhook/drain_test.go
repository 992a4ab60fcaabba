// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
)

// running is a webhook server that serves.
type running struct {
	*testing.T
	address string
	stop    context.CancelFunc
	ended   chan error
}

func runServer(t *testing.T, certDir string, makeServer func(*options) (webhook.Server, error)) *running {
	t.Helper()
	addresses, err := freeport.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := makeServer(&options{address: addresses[0], certDir: certDir, drain: 2 * time.Second}) // A busy machine can let a client wait for a second.
	if err != nil {
		t.Fatal(err)
	}
	register(s, all.WithSizes(noSizes))
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{T: t, address: addresses[0], stop: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- s.Start(ctx) }()
	ready := s.StartedChecker()
	for deadline := time.Now().Add(20 * time.Second); ready(nil) != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not ready: ", ready(nil))
		}
	}
	return r
}

// TestNoRequestIsLost sends reviews without a pause, on connections that are kept, while one server
// after another takes over. As with a Service, new connections reach the old server for a moment
// after its end has begun. The stock server loses requests, so this test can fail.
func TestNoRequestIsLost(t *testing.T) {
	t.Parallel()
	const servers, lateness = 4, 150 * time.Millisecond
	dir := certDir(t)
	for name, test := range map[string]struct {
		makeServer func(*options) (webhook.Server, error)
		loses      bool
	}{
		"ours": {func(o *options) (webhook.Server, error) { return newServer(o) }, false},
		"stock": {func(o *options) (webhook.Server, error) {
			s, err := newServer(o)
			return s.Server, err
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var address atomic.Value
			old := runServer(t, dir, test.makeServer)
			address.Store(old.address)
			l := sendBusily(t, 8, func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, address.Load().(string))
			})
			for range servers - 1 {
				l.sendMore(200)
				next := runServer(t, dir, test.makeServer)
				old.stop()
				time.AfterFunc(lateness, func() { address.Store(next.address) })
				if err := <-old.ended; err != nil {
					t.Errorf("Start: %v", err)
				}
				old = next
			}
			l.sendMore(200)
			l.stop()
			t.Logf("%d of %d requests were lost: %v", l.lost.Load(), l.sent.Load(), l.reason.Load())
			if (l.lost.Load() > 0) != test.loses {
				t.Errorf("%d of %d requests were lost, want some: %t: %v", l.lost.Load(), l.sent.Load(), test.loses, l.reason.Load())
			}
			old.stop()
			<-old.ended
		})
	}
}

// load are clients that send reviews, one after another.
type load struct {
	*testing.T
	sent, lost atomic.Int64
	reason     atomic.Value
	stop       func()
}

// sendBusily starts clients, of which two open a new connection for each review.
func sendBusily(t *testing.T, clients int, dial func(ctx context.Context, network, address string) (net.Conn, error)) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l, all := &load{T: t}, new(sync.WaitGroup)
	for n := range clients {
		transport := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: n < 2}
		client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
		all.Go(func() {
			defer transport.CloseIdleConnections()
			for ctx.Err() == nil {
				if err := sendReview(client); err != nil {
					l.lost.Add(1)
					l.reason.CompareAndSwap(nil, err.Error())
				}
				l.sent.Add(1)
			}
		})
	}
	l.stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
	t.Cleanup(l.stop)
	return l
}

func sendReview(client *http.Client) error {
	r, err := client.Post("https://webhook.test"+unitedDeploymentPath, "application/json", strings.NewReader(unitedDeployment))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if text, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(text), `"allowed":true`) {
		return fmt.Errorf("answered %s %s: %w", r.Status, text, err)
	}
	return nil
}

// sendMore waits until so many more reviews have been sent.
func (l *load) sendMore(n int64) {
	l.Helper()
	before := l.sent.Load()
	for deadline := time.Now().Add(time.Minute); l.sent.Load() < before+n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			l.Fatalf("only %d of %d reviews were answered", l.sent.Load()-before, n)
		}
	}
}

// A process that ends is unready first, keeps serving, asks its clients to close their
// connections, and then ends without an error.
func TestDrain(t *testing.T) {
	t.Parallel()
	p := startReady(t, nil, "--shutdown-delay=3s")
	p.client.Transport.(*http.Transport).DisableKeepAlives = false
	if p.send("").Close {
		t.Error("a connection is closed before the end")
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.eventually("it is not ready", func() bool { return strings.Contains(p.get("http://"+p.probes+"/readyz"), "webhook failed") })
	if p.get("http://"+p.probes+"/healthz") != "ok" {
		t.Error("it is not healthy while it drains")
	}
	for range 3 { // On the connection that was kept, and on new ones.
		if !p.send("").Close {
			t.Error("a connection is kept in the drain")
		}
	}
	if err := p.Wait(); err != nil {
		t.Errorf("%v: %s", err, &p.output)
	}
}

// announce returns the headers of a review of a length.
func announce(length int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", unitedDeploymentPath, length)
}

// pipes is a listener of connections in memory, on which time can be simulated.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// connect opens a connection and sends a text on it.
func (p pipes) connect(t *testing.T, text string) (net.Conn, *bufio.Reader) {
	here, there := net.Pipe()
	p <- there
	t.Cleanup(func() { _ = here.Close() })
	go func() { _, _ = io.WriteString(here, text) }()
	return here, bufio.NewReader(here)
}

// inBubble runs a test with a server whose time passes only when everything waits.
func inBubble(t *testing.T, test func(*testing.T, *server, pipes)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := newServer(&options{address: ":0"})
		if err != nil {
			t.Fatal(err)
		}
		register(s, all.WithSizes(noSizes))
		p := make(pipes)
		h := &http.Server{Handler: s.WebhookMux(), IdleTimeout: 90 * time.Second}
		go func() { _ = h.Serve(p) }()
		test(t, s, p)
		_ = h.Close()
	})
}

// A body has ten seconds, whatever its length, and a connection whose request was answered has no
// deadline any more but that of idle ones.
func TestBodyDeadline(t *testing.T) {
	t.Parallel()
	request := announce(len(unitedDeployment)) + unitedDeployment
	for name, start := range map[string]string{
		"a body that stops":          announce(100) + "{",
		"a large body that stops":    announce(7<<20) + "{",
		"a body of no length stops":  "POST " + unitedDeploymentPath + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
		"the second body that stops": request + announce(100) + "{",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, _ *server, p pipes) {
				begun := time.Now()
				_, answers := p.connect(t, start)
				text, _ := io.ReadAll(answers)
				// net/http waits for half a second before it closes a connection with an unread body.
				if took := time.Since(begun); took < bodyTime || took > bodyTime+time.Second {
					t.Errorf("the connection ended after %v: %s", took, text)
				}
			})
		})
	}
	t.Run("a kept connection", func(t *testing.T) {
		t.Parallel()
		inBubble(t, func(t *testing.T, _ *server, p pipes) {
			conn, answers := p.connect(t, request)
			for range 3 {
				answer, err := http.ReadResponse(answers, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				time.Sleep(80 * time.Second)
				go func() { _, _ = io.WriteString(conn, request) }()
			}
		})
	})
}

// A large body waits for its turn, and is answered 503 with Retry-After if that does not come. A
// small one does not wait.
func TestLargeBodiesShareABudget(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *server, p pipes) {
		if err := s.large.Acquire(t.Context(), maxBody-largeBody+1); err != nil {
			t.Fatal(err)
		}
		large := announce(largeBody) + strings.Repeat(" ", largeBody-len(unitedDeployment)) + unitedDeployment
		answer := func(request string) (*http.Response, time.Duration) {
			begun := time.Now()
			_, answers := p.connect(t, request)
			r, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r, time.Since(begun)
		}
		if r, took := answer(large); r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") != "1" || took != turnTime {
			t.Errorf("a large body: %s after %v", r.Status, took)
		}
		if r, took := answer(announce(len(unitedDeployment)) + unitedDeployment); r.StatusCode != http.StatusOK || took > 0 {
			t.Errorf("a small body: %s after %v", r.Status, took)
		}
		time.AfterFunc(time.Second, func() { s.large.Release(maxBody - largeBody + 1) })
		if r, took := answer(large); r.StatusCode != http.StatusOK || took != time.Second {
			t.Errorf("a large body, after its turn: %s after %v", r.Status, took)
		}
	})
}

// What is not an object in JSON is not decoded: as YAML, 7 MiB would take hundreds.
func TestOnlyJSON(t *testing.T) {
	t.Parallel()
	mux := webhooks(t)
	for body, want := range map[string]string{
		" \n" + unitedDeployment:               `"allowed":true`,
		"kind: AdmissionReview":                "not an object in JSON",
		"- {}":                                 "not an object in JSON",
		"\u0085" + unitedDeployment:            "not an object in JSON",
		"k8s\x00":                              "not an object in JSON",
		"{" + strings.Repeat(" ", maxBody):     "too large",
		"{kind: AdmissionReview, request: {}}": "invalid character",
	} {
		if answer := string(post(mux, unitedDeploymentPath, body)); !strings.Contains(answer, want) {
			t.Errorf("%.40q: %s, want %s", body, answer, want)
		}
	}
}
