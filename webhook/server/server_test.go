// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/app"
	"github.com/modelbox-operator/modelbox-operator/test/certificates"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

var appKind = kinds.Kind[appv1.App]{GVK: appv1.SchemeGroupVersion.WithKind("App"), Default: app.Default, Validate: app.Validate}

// review is the review of an App that lacks its defaults.
const review = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002",` +
	`"kind":{"group":"app.huolala.cn","version":"v1","kind":"App"},"operation":"CREATE","name":"web","namespace":"default",` +
	`"object":{"apiVersion":"app.huolala.cn/v1","kind":"App","metadata":{"name":"web"},"spec":{"image":"server:1","ports":[{"port":8080}]}}}}`

// readBody reads the body of a request or answers why it cannot be read, as a webhook
// does.
func readBody(w http.ResponseWriter, r *http.Request) bool {
	_, err := io.Copy(io.Discard, r.Body)
	if limit, ok := errors.AsType[*apierrors.StatusError](err); ok {
		reject(w, limit)
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		w.WriteHeader(http.StatusRequestTimeout)
	}
	return err == nil
}

// secret is a directory like that of a mounted Secret, which a kubelet renews by
// the swap of one symbolic link.
type secret struct {
	t   testing.TB
	dir string
	n   int
}

func newSecret(t testing.TB) *secret {
	s := &secret{t: t, dir: t.TempDir()}
	for _, file := range []string{"tls.crt", "tls.key"} {
		s.must(os.Symlink(filepath.Join("..data", file), filepath.Join(s.dir, file)))
	}
	return s
}

func (s *secret) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// issue puts a new certificate in place, with a common name to know it by.
func (s *secret) issue(name string) {
	cert, key := certificates.New(name, s.n+1)
	s.put(cert, key)
}

// put swaps the pair of files for another.
func (s *secret) put(cert, key []byte) {
	s.n++
	old, _ := os.Readlink(filepath.Join(s.dir, "..data"))
	data := fmt.Sprintf("..%d", s.n)
	s.must(os.Mkdir(filepath.Join(s.dir, data), 0o755))
	s.must(os.WriteFile(filepath.Join(s.dir, data, "tls.crt"), cert, 0o600))
	s.must(os.WriteFile(filepath.Join(s.dir, data, "tls.key"), key, 0o600))
	s.must(os.Symlink(data, filepath.Join(s.dir, "..data_tmp")))
	s.must(os.Rename(filepath.Join(s.dir, "..data_tmp"), filepath.Join(s.dir, "..data")))
	if old != "" {
		s.must(os.RemoveAll(filepath.Join(s.dir, old)))
	}
}

// running is a server on a free port of the loopback interface.
type running struct {
	*Server
	t     testing.TB
	stop  context.CancelFunc
	ended chan error
}

func run(t testing.TB, opts Options, handlers map[string]http.Handler) *running {
	t.Helper()
	opts.Addr = "127.0.0.1:0"
	s := New(opts)
	s.certificate.retry, s.certificate.poll = 10*time.Millisecond, 50*time.Millisecond
	admission.Register(s, appKind)
	for path, handler := range handlers {
		s.Register(path, handler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Server: s, t: t, stop: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		r.wait()
	})
	eventually(t, "the server listens", func() bool { return s.addr.Load() != nil })
	return r
}

// runReady is run with a certificate, and waits until it is loaded.
func runReady(t testing.TB, opts Options, handlers map[string]http.Handler) *running {
	t.Helper()
	certs := newSecret(t)
	certs.issue("first")
	opts.CertDir = certs.dir
	r := run(t, opts, handlers)
	eventually(t, "the server is ready", func() bool { return r.Ready(nil) == nil })
	return r
}

func (r *running) wait() {
	select {
	case err := <-r.ended:
		if err != nil {
			r.t.Errorf("Start: %v", err)
		}
		r.ended <- nil
	case <-time.After(30 * time.Second):
		r.t.Error("the server does not end")
	}
}

func (r *running) address() string { return (*r.addr.Load()).String() }

func (r *running) url(path string) string { return "https://" + r.address() + path }

// dial makes a TLS connection and returns the common name of the certificate.
func (r *running) dial(config *tls.Config) (*tls.Conn, string, error) {
	config.InsecureSkipVerify = true
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", r.address(), config)
	if err != nil {
		return nil, "", err
	}
	r.t.Cleanup(func() { conn.Close() })
	return conn, conn.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

func newClient(t testing.TB) *http.Client {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 25,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

// send posts a body and returns the answer with its text.
func send(t testing.TB, client *http.Client, url string, body io.Reader) (*http.Response, string) {
	t.Helper()
	r, err := client.Post(url, "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(text)
}

func TestServes(t *testing.T) {
	t.Parallel()
	s := runReady(t, Options{}, nil)
	client := newClient(t)
	for path, want := range map[string]string{
		admission.MutatePath(appKind.GVK): `"patchType":"JSONPatch"`, admission.ValidatePath(appKind.GVK): `"allowed":true`, "/": "404",
	} {
		r, text := send(t, client, s.url(path), strings.NewReader(review))
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", path, text, want)
		}
		if r.Proto != "HTTP/1.1" || r.Header.Get("Connection") != "" {
			t.Errorf("%s: %s, headers %v, want HTTP/1.1 and a connection to keep", path, r.Proto, r.Header)
		}
	}
	conn, _, err := s.dial(&tls.Config{NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := conn.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("negotiated %q although h2 was offered", got)
	}
	if s.NeedLeaderElection() {
		t.Error("a replica that does not lead would not serve")
	}
}

func TestTLSVersions(t *testing.T) {
	t.Parallel()
	s := runReady(t, Options{}, nil)
	for version, want := range map[uint16]bool{
		tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true,
	} {
		_, _, err := s.dial(&tls.Config{MinVersion: version, MaxVersion: version})
		if (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
}

// TestRequestTLS: a webhook can see how a request came.
func TestRequestTLS(t *testing.T) {
	t.Parallel()
	s := runReady(t, Options{}, map[string]http.Handler{"/tls": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, tls.VersionName(r.TLS.Version)+" "+r.TLS.NegotiatedProtocol)
	})})
	client := newClient(t)
	for range 2 { // On one connection.
		if _, text := send(t, client, s.url("/tls"), nil); text != "TLS 1.3 http/1.1" {
			t.Errorf("the request has %q", text)
		}
	}
}

func TestCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	certs := newSecret(t)
	certs.issue("first")
	s := run(t, Options{CertDir: certs.dir}, nil)
	serves := func(want string) func() bool {
		return func() bool {
			_, name, err := s.dial(&tls.Config{})
			return err == nil && name == want
		}
	}
	eventually(t, "the first certificate is served", serves("first"))
	kept := newClient(t)
	send(t, kept, s.url(admission.ValidatePath(appKind.GVK)), strings.NewReader(review))

	certs.issue("second")
	eventually(t, "the second certificate is served", serves("second"))
	if r, _ := send(t, kept, s.url(admission.ValidatePath(appKind.GVK)), strings.NewReader(review)); r.TLS.PeerCertificates[0].Subject.CommonName != "first" {
		t.Error("the connection from before was not kept")
	}

	watcher := s.certificate.watcher.Load()
	certs.put([]byte("broken"), []byte("broken"))
	eventually(t, "the broken pair has been read", func() bool { return watcher.ReadCertificate() != nil })
	if !serves("second")() || s.Ready(nil) != nil {
		t.Error("a broken pair took the place of one that works")
	}

	certs.issue("third")
	eventually(t, "the third certificate is served", serves("third"))
}

func TestCertificateIsAwaited(t *testing.T) {
	t.Parallel()
	certs := newSecret(t)
	s := run(t, Options{CertDir: certs.dir}, nil)
	eventually(t, "the server says what is missing", func() bool {
		err := s.Ready(nil)
		return err != nil && strings.Contains(err.Error(), "tls.crt")
	})
	if _, _, err := s.dial(&tls.Config{}); err == nil {
		t.Error("a connection was made without a certificate")
	}
	if err := s.Healthy(nil); err != nil {
		t.Errorf("unhealthy while waiting: %v", err)
	}
	certs.issue("late")
	eventually(t, "the server is ready", func() bool { return s.Ready(nil) == nil })
	if _, name, err := s.dial(&tls.Config{}); name != "late" {
		t.Errorf("served %q: %v", name, err)
	}
}

func TestCertificateExpiryMetric(t *testing.T) {
	t.Parallel()
	files := newSecret(t)
	c := &certificate{dir: files.dir, retry: time.Millisecond, poll: 50 * time.Millisecond, expiry: prometheus.NewGauge(prometheus.GaugeOpts{Name: "expiry"})}
	go c.run(t.Context())
	eventually(t, "the certificate is missed", func() bool { return c.missing.Load() != nil })
	if got := valueOf(t, c.expiry); got != 0 {
		t.Errorf("%f is the expiry before there is a certificate, want 0", got)
	}
	for _, name := range []string{"first", "second"} {
		files.issue(name)
		eventually(t, "the expiry of the "+name+" certificate is reported", func() bool {
			pair, err := c.get(nil)
			return err == nil && pair.Leaf.Subject.CommonName == name && valueOf(t, c.expiry) == float64(pair.Leaf.NotAfter.Unix())
		})
	}
}

func valueOf(t *testing.T, metric prometheus.Collector) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metric)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := families[0].GetMetric()[0]
	return series.GetGauge().GetValue() + series.GetCounter().GetValue()
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := New(Options{Addr: taken.Addr().String()})
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "listening for admission requests") {
		t.Errorf("Start: %v", err)
	}
	if s.Ready(nil) == nil {
		t.Error("ready without a port")
	}
}

// TestBodyLimit uses the default limit and bodies well over it.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	s := runReady(t, Options{}, nil)
	const limit = 7 << 20
	// In the object: what a review has beside its objects has a bound of its own.
	padded := func(n int) []byte {
		return []byte(strings.Replace(review, `"object":{`, `"object":{`+strings.Repeat(" ", n-len(review)), 1))
	}
	for name, tc := range map[string]struct {
		body      []byte
		announced bool
		code      int
	}{
		"at the limit":             {padded(limit), true, 200},
		"one byte more":            {padded(limit + 1), true, 413},
		"far too large":            {padded(8 << 20), true, 413},
		"too large, not announced": {padded(8 << 20), false, 413},
	} {
		for _, path := range []string{admission.MutatePath(appKind.GVK), admission.ValidatePath(appKind.GVK)} {
			t.Run(name+path, func(t *testing.T) {
				var body io.Reader = bytes.NewReader(tc.body)
				if !tc.announced {
					body = io.MultiReader(body)
				}
				if r, text := send(t, newClient(t), s.url(path), body); r.StatusCode != tc.code {
					t.Errorf("answered %d %s, want %d", r.StatusCode, text, tc.code)
				}
			})
		}
	}
}

// gate is a handler that answers when it is opened.
type gate struct {
	entered chan struct{}
	open    chan struct{}
}

func newGate() *gate { return &gate{make(chan struct{}, 100), make(chan struct{})} }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !readBody(w, r) {
		return
	}
	g.entered <- struct{}{}
	<-g.open
	w.WriteHeader(http.StatusOK)
}

func TestInFlightLimit(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := runReady(t, Options{MaxInFlight: 2}, map[string]http.Handler{"/gate": g})
	// Of these, only the headers have come: they take no part of the limit.
	for range 10 {
		conn, _, err := s.dial(&tls.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "POST /gate HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "ten are being read", func() bool { return s.inFlight.Load() == 10 })
	// Two are being answered.
	codes := make(chan int, 2)
	for range 2 {
		go func() {
			r, err := newClient(t).Post(s.url("/gate"), "application/json", strings.NewReader("{}"))
			if err != nil {
				codes <- 0
				return
			}
			r.Body.Close()
			codes <- r.StatusCode
		}()
		<-g.entered
	}
	before := valueOf(t, overCapacityTotal)
	r, text := send(t, newClient(t), s.url("/gate"), strings.NewReader("{}"))
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") != "1" || !strings.Contains(text, "in flight") {
		t.Errorf("answered %d %v %s, want 503 with Retry-After: 1", r.StatusCode, r.Header, text)
	}
	if got := valueOf(t, overCapacityTotal); got <= before {
		t.Errorf("rejections: %v after %v", got, before)
	}
	close(g.open)
	for range 2 {
		if code := <-codes; code != 200 {
			t.Errorf("answered %d within the limit", code)
		}
	}
	eventually(t, "none is answered", func() bool { return s.inFlight.Load() == 10 && s.bytes.Load() == 0 })
	if r, _ := send(t, newClient(t), s.url("/gate"), strings.NewReader("{}")); r.StatusCode != 200 {
		t.Errorf("answered %d with room again", r.StatusCode)
	}
}

// TestBytesInFlightLimit: a body takes its buffers' capacity of the half that small bodies
// have.
func TestBytesInFlightLimit(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := runReady(t, Options{MaxBytesInFlight: 128 << 10}, map[string]http.Handler{"/gate": g})
	first := make(chan struct{})
	body := strings.Repeat(" ", 60<<10)
	go func() {
		defer close(first)
		if r, err := newClient(t).Post(s.url("/gate"), "application/json", strings.NewReader(body)); err == nil {
			r.Body.Close()
		}
	}()
	<-g.entered
	large := func() int {
		r, _ := send(t, newClient(t), s.url("/gate"), strings.NewReader(body))
		if retry := r.Header.Get("Retry-After"); (r.StatusCode == 503) != (retry == "1") {
			t.Errorf("answered %d with Retry-After %q", r.StatusCode, retry)
		}
		return r.StatusCode
	}
	if got := large(); got != 503 {
		t.Errorf("answered %d over the limit", got)
	}
	close(g.open)
	<-first
	eventually(t, "nothing is in flight", func() bool { return s.bytes.Load() == 0 })
	if got := large(); got != 200 {
		t.Errorf("answered %d with room again", got)
	}
}

// TestHeaderLimit: net/http allows 4 KiB over its MaxHeaderBytes.
func TestHeaderLimit(t *testing.T) {
	t.Parallel()
	s := runReady(t, Options{}, nil)
	for size, want := range map[int]int{8 << 10: 200, 24 << 10: 431} {
		r, err := http.NewRequest(http.MethodPost, s.url(admission.ValidatePath(appKind.GVK)), strings.NewReader(review))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Long", strings.Repeat("x", size))
		answer, err := newClient(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%d bytes of headers: %d, want %d", size, answer.StatusCode, want)
		}
	}
}

// TestNoise: what a port scan leaves behind is for those who ask for details.
func TestNoise(t *testing.T) {
	t.Parallel()
	for verbosity, want := range map[int]bool{0: false, 1: true} {
		t.Run(fmt.Sprint(verbosity), func(t *testing.T) {
			t.Parallel()
			var noise atomic.Bool
			raw, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := New(Options{})
			s.log = funcr.New(func(_, line string) {
				if strings.Contains(line, "before its first request") {
					noise.Store(true)
				}
			}, funcr.Options{Verbosity: verbosity})
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- s.serve(ctx, raw) }()
			conn, err := net.Dial("tcp", raw.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(conn) // Until the server closes it.
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if noise.Load() != want {
				t.Errorf("logged %v at verbosity %d, want %v", noise.Load(), verbosity, want)
			}
		})
	}
}
