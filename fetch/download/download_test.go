// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

// content is what the servers of these tests have.
var content = bytes.Repeat([]byte("0123456789abcdef"), 1<<16)

func sum(of []byte) string {
	hash := sha256.Sum256(of)
	return hex.EncodeToString(hash[:])
}

// answers are a server: each request gets the next answer, and the last answer again and again.
type answers []http.HandlerFunc

// serve answers with the content as a web server does, with ranges.
func serve(etag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
}

// cut answers with the first bytes of what another handler does, and then breaks the connection.
func cut(after int, handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		handler(&cutter{ResponseWriter: w, left: after}, r)
	}
}

type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(bytes []byte) (int, error) {
	n, err := c.ResponseWriter.Write(bytes[:min(len(bytes), c.left)])
	if c.left -= n; c.left == 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

// whole answers without ranges and without a length.
func whole(w http.ResponseWriter, _ *http.Request) {
	for part := range slices.Chunk(content, 100_000) {
		_, _ = w.Write(part)
		_ = http.NewResponseController(w).Flush()
	}
}

// file is a Sink in memory.
type file struct {
	mutex sync.Mutex
	bytes []byte
	err   error
}

func (f *file) WriteAt(bytes []byte, at int64) (int, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.err != nil {
		return 0, f.err
	}
	f.bytes = append(f.bytes, make([]byte, max(0, int(at)+len(bytes)-len(f.bytes)))...)
	return copy(f.bytes[at:], bytes), nil
}

func (f *file) ReadAt(into []byte, at int64) (int, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return bytes.NewReader(f.bytes).ReadAt(into, at)
}

func (f *file) Truncate(size int64) error {
	f.bytes = append(f.bytes, make([]byte, max(0, int(size)-len(f.bytes)))...)[:size]
	return nil
}

// outcome is what a download did.
type outcome struct {
	err      error
	fetched  download.Fetched
	file     *file
	requests []http.Header
	took     time.Duration
	log      string
}

// fetch downloads from a server within a bubble.
func fetch(t *testing.T, server answers, change ...func(*download.Item, *download.Downloader, *file)) (got outcome) {
	synctest.Test(t, func(t *testing.T) {
		var mutex sync.Mutex
		d, closer := downloader(func(w http.ResponseWriter, r *http.Request) {
			mutex.Lock()
			answer := server[min(len(got.requests), len(server)-1)]
			got.requests = append(got.requests, r.Header.Clone())
			mutex.Unlock()
			answer(w, r)
		})
		var lines bytes.Buffer
		counter := &report.Counter{}
		counter.Begin("progress", 0)
		d.Log, d.Counter = report.NewLog(&lines), counter
		item := theItem()
		got.file = &file{}
		for _, each := range change {
			each(&item, d, got.file)
		}
		stop := report.Progress(d.Log, counter, 10*time.Second)
		begin := time.Now()
		got.fetched, got.err = d.File(t.Context(), item, got.file, 2<<20)
		got.took = time.Since(begin)
		stop()
		closer()
		got.log = lines.String()
	})
	if strings.Contains(got.log, "secret") || got.err != nil && strings.Contains(got.err.Error(), "secret") {
		t.Errorf("a query is shown: %s %v", got.log, got.err)
	}
	return got
}

// downloader returns a downloader from a server in memory, and what ends both.
func downloader(handler http.HandlerFunc) (*download.Downloader, func()) {
	network := newNetwork()
	web := &http.Server{ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute, Handler: handler}
	go web.Serve(network)
	client := guard.New(nil, guard.Options{Proxy: http.ProxyURL(nil), Dial: network.Dial})
	d := &download.Downloader{Client: client, RetryFor: 30 * time.Minute, Jitter: func() float64 { return 0 }}
	return d, func() {
		client.Close()
		web.Close()
		<-time.After(time.Hour) // The time of the bubble, in which handlers notice.
		synctest.Wait()
	}
}

func theItem() download.Item {
	return download.Item{
		Request: guard.Request{URL: &url.URL{Scheme: "http", Host: "models.test", Path: "/a.bin", RawQuery: "token=secret"}, Plain: true},
		Size:    -1, Hash: download.Hash{Name: "sha256", Field: "spec.model.sha256", Want: sum(content)},
	}
}

func (o outcome) mustBeRight(t *testing.T, requests int) {
	t.Helper()
	if o.err != nil || !bytes.Equal(o.file.bytes, content) || o.fetched.Bytes != int64(len(content)) || o.fetched.Sum != sum(content) {
		t.Fatalf("error %v, %d bytes; log:\n%s", o.err, len(o.file.bytes), o.log)
	}
	if len(o.requests) != requests {
		t.Fatalf("%d requests, want %d; log:\n%s", len(o.requests), requests, o.log)
	}
}

func (o outcome) mustFail(t *testing.T, word failure.Word, requests int, text string) {
	t.Helper()
	if o.err == nil || failure.Of(o.err).Word != word || !strings.Contains(o.err.Error(), text) {
		t.Fatalf("error %v, want [%s] with %q", o.err, word, text)
	}
	if requests > 0 && len(o.requests) != requests {
		t.Fatalf("%d requests, want %d; log:\n%s", len(o.requests), requests, o.log)
	}
}

func TestAFileIsFetched(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{"with ranges": serve(`"1"`), "without a length": whole} {
		t.Run(name, func(t *testing.T) {
			got := fetch(t, answers{handler})
			got.mustBeRight(t, 1)
			if header := got.requests[0]; header.Get("Accept-Encoding") != "identity" || header.Get("Range") != "" {
				t.Error(header)
			}
		})
	}
}

func TestResume(t *testing.T) {
	got := fetch(t, answers{cut(100_000, serve(`"1"`)), cut(200_000, serve(`"1"`)), serve(`"1"`)})
	got.mustBeRight(t, 3)
	if first, second := got.requests[1], got.requests[2]; first.Get("Range") != "bytes=100000-1048575" || first.Get("If-Range") != `"1"` || second.Get("Range") != "bytes=300000-1048575" {
		t.Error(first, second)
	}
	if !strings.Contains(got.log, "the download is resumed at 97.7 KiB") {
		t.Error(got.log)
	}
}

// sendPart answers with a part that may be wrong.
func sendPart(contentRange, etag string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Range", contentRange)
		w.Header().Set("ETag", etag)
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(body)
	}
}

func TestAFileThatCannotBeResumedBeginsAnew(t *testing.T) {
	size := len(content)
	for _, each := range []struct {
		name     string
		server   answers
		requests int
		ranged   bool
	}{
		{"a server without ranges", answers{cut(100_000, whole), whole}, 2, false},
		{"another entity tag", answers{cut(100_000, serve(`"1"`)), serve(`"2"`)}, 2, true},
		{"a weak entity tag", answers{cut(100_000, serve(`W/"1"`)), serve(`W/"1"`)}, 2, false},
		{"a shorter part", answers{cut(100_000, serve(`"1"`)), sendPart(fmt.Sprintf("bytes 100000-199999/%d", size), `"1"`, content[100_000:200_000]), serve(`"1"`)}, 3, true},
	} {
		t.Run(each.name, func(t *testing.T) {
			got := fetch(t, each.server)
			got.mustBeRight(t, each.requests)
			if ranged := got.requests[1].Get("Range") != ""; ranged != each.ranged {
				t.Error(got.requests[1])
			}
		})
	}
}

func TestWrongHash(t *testing.T) {
	got := fetch(t, answers{serve(`"1"`)}, func(i *download.Item, _ *download.Downloader, _ *file) { i.Hash.Want = sum(nil) })
	got.mustFail(t, failure.WrongHash, 1, "sha256 is "+sum(content)+", spec.model.sha256 says "+sum(nil)+": check spec.model.sha256")
}

func TestAWrongHashOfAResumedFileIsTriedOnceMore(t *testing.T) {
	other := bytes.Repeat([]byte("x"), len(content))
	mixed := sendPart(fmt.Sprintf("bytes 100000-%d/%d", len(content)-1, len(content)), `"1"`, other[100_000:])
	fetch(t, answers{cut(100_000, serve(`"1"`)), mixed, serve(`"1"`)}).mustBeRight(t, 3)

	wrong := func(i *download.Item, _ *download.Downloader, _ *file) { i.Hash.Want = sum(nil) }
	got := fetch(t, answers{cut(100_000, serve(`"1"`)), serve(`"1"`), cut(100_000, serve(`"1"`)), serve(`"1"`)}, wrong)
	got.mustFail(t, failure.WrongHash, 4, "sha256")
	if got.requests[3].Get("Range") == "" {
		t.Error("the second time nothing is resumed", got.requests[3])
	}
}

func TestAWrongSize(t *testing.T) {
	got := fetch(t, answers{serve(`"1"`)}, func(i *download.Item, _ *download.Downloader, _ *file) { i.Size = 5 })
	got.mustFail(t, failure.WrongHash, 1, "has 1048576 bytes, and spec.model.sha256 says 5")
}

func TestFinalStatuses(t *testing.T) {
	for code, word := range map[int]failure.Word{
		400: failure.Invalid, 401: failure.Denied, 403: failure.Denied, 404: failure.NotFound, 407: failure.Denied, 410: failure.NotFound,
		405: failure.Invalid, 416: failure.Invalid, 451: failure.Invalid, 204: failure.Invalid, 206: failure.Invalid, 300: failure.Invalid, 302: failure.Invalid, 304: failure.Invalid,
	} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			got := fetch(t, answers{status(code)})
			got.mustFail(t, word, 1, fmt.Sprintf("%d %s: http://models.test/a.bin: check spec.model.uri", code, http.StatusText(code)))
		})
	}
}

func TestStatusesThatPass(t *testing.T) {
	for _, code := range []int{408, 425, 429, 500, 502, 503, 504} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			got := fetch(t, answers{status(code), status(code), serve(`"1"`)})
			got.mustBeRight(t, 3)
			if got.took != 3*time.Second {
				t.Errorf("took %s, want 1 s and 2 s", got.took)
			}
		})
	}
}

func TestAServerThatStaysDown(t *testing.T) {
	got := fetch(t, answers{status(503)})
	got.mustFail(t, failure.Unreachable, 0, "503 Service Unavailable: http://models.test/a.bin, and no attempt brought more for 29m")
	if got.took < 29*time.Minute || got.took > 30*time.Minute {
		t.Errorf("took %s", got.took)
	}
	if requests := len(got.requests); requests < 60 || requests > 66 {
		t.Errorf("%d requests in 30 minutes", requests)
	}
}

func connectFor(_ *download.Item, d *download.Downloader, _ *file) { d.ConnectFor = 10 * time.Second }

// hang never answers.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Before the first byte, a server that is down is reported soon.
func TestAServerThatIsDownFromTheBeginning(t *testing.T) {
	headersAlone := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		_ = http.NewResponseController(w).Flush()
		hang(w, r)
	}
	for name, each := range map[string]struct {
		server   http.HandlerFunc
		requests int
		took     time.Duration
		text     string
	}{
		"503":               {status(503), 4, 7 * time.Second, "503 Service Unavailable: http://models.test/a.bin, and no attempt brought more for 7s: check that the server is up"},
		"no answer":         {hang, 1, 5 * time.Minute, "timeout awaiting response headers, and no attempt brought more for 5m0s"},
		"headers alone":     {headersAlone, 1, 5 * time.Minute, "less than 1 KiB/s came for 5m0s"},
		"a cut before data": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 4, 7 * time.Second, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			got := fetch(t, answers{each.server}, connectFor)
			if got.mustFail(t, failure.Unreachable, each.requests, each.text); got.took != each.took {
				t.Errorf("took %s, want %s", got.took, each.took)
			}
		})
	}
	got := fetch(t, answers{serve(`"1"`)}, connectFor, nowhere)
	if got.mustFail(t, failure.Unreachable, 0, "i/o timeout"); got.took != 10*time.Second {
		t.Errorf("took %s, want 10 s in all", got.took)
	}
	got = fetch(t, answers{serve(`"1"`)}, connectFor, func(_ *download.Item, d *download.Downloader, _ *file) { d.Client = unknown{} })
	if got.mustFail(t, failure.Unreachable, 0, "no such host"); got.took > 10*time.Second {
		t.Errorf("an unknown host took %s", got.took)
	}
}

// blackhole is a client whose connections are never made.
type blackhole struct{}

func (blackhole) Get(context.Context, guard.Request) (*http.Response, error) {
	<-time.After(10 * time.Second) // The time of the bubble.
	return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
}

func nowhere(_ *download.Item, d *download.Downloader, _ *file) { d.Client = blackhole{} }

// A cache that fetches the file itself before it answers, and one that asks to wait for that, are waited for.
func TestASlowCache(t *testing.T) {
	after := func(wait time.Duration, next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			<-time.After(wait) // The time of the bubble.
			next(w, r)
		}
	}
	for name, each := range map[string]struct {
		server answers
		took   time.Duration
	}{
		"12 s":            {answers{after(12*time.Second, serve(`"1"`))}, 12 * time.Second},
		"299 s":           {answers{after(299*time.Second, serve(`"1"`))}, 299 * time.Second},
		"Retry-After 15":  {answers{status(429, "Retry-After", "15"), serve(`"1"`)}, 15 * time.Second},
		"several times":   {answers{status(503, "Retry-After", "100"), status(503, "Retry-After", "200"), serve(`"1"`)}, 300 * time.Second},
		"and then slowly": {answers{status(429, "Retry-After", "60"), after(time.Minute, serve(`"1"`))}, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			got := fetch(t, each.server, connectFor)
			if got.mustBeRight(t, len(each.server)); got.took != each.took {
				t.Errorf("took %s, want %s", got.took, each.took)
			}
		})
	}
}

// Once a byte has come, everything is retried for as long as usual.
func TestAServerThatIsDownLater(t *testing.T) {
	down := make(answers, 0, 60)
	down = append(down, status(503), cut(1, serve(`"1"`)))
	for range 55 {
		down = append(down, status(503))
	}
	got := fetch(t, append(down, serve(`"1"`)), connectFor)
	got.mustBeRight(t, 58)
	if got.took < 20*time.Minute || got.requests[57].Get("Range") != "bytes=1-1048575" {
		t.Errorf("took %s: %v", got.took, got.requests[57])
	}
	slow := func(w http.ResponseWriter, r *http.Request) {
		<-time.After(9 * time.Second) // The time of the bubble.
		cut(1, serve(`"1"`))(w, r)
	}
	later := func(w http.ResponseWriter, r *http.Request) {
		<-time.After(59 * time.Second)
		serve(`"1"`)(w, r)
	}
	fetch(t, answers{slow, later}, connectFor).mustBeRight(t, 2)
}

// A connection that breaks again and again at the same place makes no progress; one that brings a byte each time does.
func TestProgressExtendsTheRetries(t *testing.T) {
	got := fetch(t, answers{cut(1000, whole)})
	got.mustFail(t, failure.Unreachable, 0, "unexpected EOF")
	if got.took > 30*time.Minute {
		t.Errorf("took %s", got.took)
	}
	parts := make(answers, 0, 70)
	for range 60 {
		parts = append(parts, status(500), status(500), status(500), status(500), status(500), cut(10, serve(`"1"`)))
	}
	got = fetch(t, append(parts, serve(`"1"`)))
	got.mustBeRight(t, 361)
	if got.took < 30*time.Minute {
		t.Errorf("took %s, and shows nothing", got.took)
	}
}

func TestAStalledConnectionIsCut(t *testing.T) {
	half := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content[:500_000])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	got := fetch(t, answers{hang, half, serve(`"1"`)})
	got.mustBeRight(t, 3)
	if got.took != 5*time.Minute+time.Second+time.Minute+time.Second {
		t.Errorf("took %s", got.took)
	}
	if got.requests[2].Get("Range") != "bytes=500000-1048575" || !strings.Contains(got.log, "less than 1 KiB/s came for 1m0s") {
		t.Error(got.requests[2], got.log)
	}
}

func TestASlowServerIsFollowed(t *testing.T) {
	slow := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		for part := range slices.Chunk(content, len(content)/64) {
			<-time.After(5 * time.Second) // The time of the bubble.
			_, _ = w.Write(part)
			_ = http.NewResponseController(w).Flush()
		}
	}
	got := fetch(t, answers{slow})
	got.mustBeRight(t, 1)
	line := regexp.MustCompile(`(?m)^progress: [0-9.]+ KiB of 1\.0 MiB \([0-9]+ %\), [0-9.]+ KiB/s$`)
	if lines := line.FindAllString(got.log, -1); len(lines) < 30 {
		t.Error(got.log)
	}
}

func TestTheLimit(t *testing.T) {
	large := bytes.Repeat(content, 3)
	for name, length := range map[string]string{"said": strconv.Itoa(len(large)), "not said": ""} {
		t.Run(name, func(t *testing.T) {
			got := fetch(t, answers{func(w http.ResponseWriter, _ *http.Request) {
				if length != "" {
					w.Header().Set("Content-Length", length)
				}
				_, _ = w.Write(large)
			}})
			got.mustFail(t, failure.TooBig, 1, "more than the 2.0 MiB that are left of spec.model.sizeLimit: raise it")
			if name == "said" && len(got.file.bytes) > 0 || len(got.file.bytes) > 2<<20 {
				t.Error("bytes were fetched:", len(got.file.bytes))
			}
		})
	}
}

func endless(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() }

func TestARefusedAddressIsNotRetried(t *testing.T) {
	got := fetch(t, answers{serve(`"1"`)}, func(i *download.Item, _ *download.Downloader, _ *file) { i.URL.Host = "169.254.169.254" })
	if got.mustFail(t, failure.Refused, 0, "link-local"); got.took > 0 {
		t.Errorf("took %s", got.took)
	}
}

func TestRead(t *testing.T) {
	for _, each := range []struct {
		limit int64
		word  failure.Word
	}{{limit: 1 << 20}, {limit: 1<<20 - 1, word: failure.TooBig}} {
		synctest.Test(t, func(t *testing.T) {
			network := newNetwork()
			web := &http.Server{Handler: serve(`"1"`), ReadHeaderTimeout: time.Minute}
			go web.Serve(network)
			defer web.Close()
			client := guard.New(nil, guard.Options{Proxy: http.ProxyURL(nil), Dial: network.Dial})
			defer client.Close()
			d := &download.Downloader{Client: client, ConnectFor: time.Second, RetryFor: time.Minute}
			item := download.Item{Request: guard.Request{URL: &url.URL{Scheme: "http", Host: "a.test", Path: "/"}, Plain: true}}
			body, header, err := d.Read(t.Context(), item, each.limit)
			if each.word == "" && (err != nil || len(body) != 1<<20 || header.Get("ETag") != `"1"`) || each.word != "" && failure.Of(err).Word != each.word {
				t.Error(len(body), header, err)
			}
		})
	}
}

// A list is asked for again before a file has begun: nothing is lost if its server is reported soon.
func TestAListOfAServerThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &download.Downloader{Client: unknown{}, ConnectFor: 10 * time.Second, RetryFor: time.Hour}
		begin := time.Now()
		_, _, err := d.Read(t.Context(), download.Item{Request: guard.Request{URL: &url.URL{}}}, 1)
		if took := time.Since(begin); err == nil || failure.Of(err).Word != failure.Unreachable || took > 10*time.Second {
			t.Error(took, err)
		}
	})
}

func TestACanceledContextEndsTheRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, context.Canceled)
		defer cancel()
		d := &download.Downloader{Client: unknown{}, RetryFor: time.Hour}
		_, err := d.File(ctx, download.Item{Request: guard.Request{URL: &url.URL{}}}, &file{}, 1)
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// unknown is a client without name server.
type unknown struct{}

func (unknown) Get(context.Context, guard.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "models.test", IsNotFound: true}}
}

// failing makes the file fail at the third request.
type failing struct {
	download.Getter
	file  *file
	count atomic.Int32
}

func (f *failing) Get(ctx context.Context, request guard.Request) (*http.Response, error) {
	if f.count.Add(1) == 3 {
		f.file.mutex.Lock()
		f.file.err = syscall.ENOSPC
		f.file.mutex.Unlock()
	}
	return f.Getter.Get(ctx, request)
}

// Without a hash, what HTTP tells is refused.
func TestWithoutAHash(t *testing.T) {
	unverified := func(i *download.Item, _ *download.Downloader, _ *file) { i.Hash.Want = "" }
	named := func(name string) func(*download.Item, *download.Downloader, *file) {
		return func(i *download.Item, _ *download.Downloader, _ *file) { i.URL.Path = "/" + name }
	}
	send := func(body string, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			status(http.StatusOK, headers...)(w, r)
			_, _ = io.WriteString(w, body)
		}
	}
	raw := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(connection, answer)
				_ = connection.Close()
			}
		}
	}
	page := "\n<!doctype html><title>Log in</title>"
	for name, each := range map[string]struct {
		server  http.HandlerFunc
		refused string
		file    string
	}{
		"nothing":                  {send("", "Content-Length", "0"), "has 0 bytes", "a.gguf"},
		"nothing in chunks":        {endless, "has 0 bytes", "a.gguf"},
		"a login page":             {send(page, "Content-Type", "text/html; charset=utf-8"), "is a web page, often of a login", "a.gguf"},
		"a page by its content":    {send(page, "Content-Type", "application/octet-stream"), "is a web page", "a.gguf"},
		"a page on purpose":        {send(page, "Content-Type", "text/html"), "", "a.html"},
		"gzip":                     {send("x", "Content-Encoding", "gzip"), "comes with Content-Encoding gzip", "a.gguf"},
		"gzip by its name":         {send("x", "Content-Encoding", "x-gzip"), "", "a.tar.gz"},
		"no encoding":              {send("x", "Content-Encoding", "identity"), "", "a.gguf"},
		"HTTP/1.0":                 {raw("HTTP/1.0 200 OK\r\n\r\nabc"), "comes without its size", "a.gguf"},
		"until the end":            {raw("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc"), "comes without its size", "a.gguf"},
		"a cut among the chunks":   {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"), "unexpected EOF", "a.gguf"},
		"a 206 that was not asked": {sendPart("bytes 0-1/9", `"1"`, []byte("xx")), "206 Partial Content", "a.gguf"},
	} {
		t.Run(name, func(t *testing.T) {
			got := fetch(t, answers{each.server}, unverified, named(each.file))
			if each.refused == "" && got.err != nil || each.refused != "" && (got.err == nil || !strings.Contains(got.err.Error(), each.refused)) {
				t.Errorf("%v, want %q", got.err, each.refused)
			}
		})
	}
	got := fetch(t, answers{cut(100_000, serve(`"1"`)), sendPart("bytes 100000-100009/100010", `"1"`, content[100_000:100_010]), serve(`"1"`)}, unverified)
	if got.err != nil || !bytes.Equal(got.file.bytes, content) || len(got.requests) != 3 {
		t.Error("a 206 with another total:", got.err, len(got.file.bytes), len(got.requests))
	}
	part := fmt.Sprintf("bytes 100000-%d/%d", len(content)-1, len(content))
	encoded := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		sendPart(part, `"1"`, content[100_000:])(w, r)
	}
	fetch(t, answers{cut(100_000, serve(`"1"`)), encoded}, unverified).mustFail(t, failure.Refused, 2, "comes with Content-Encoding gzip")
	short := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		sendPart(part, `"1"`, bytes.Repeat([]byte("x"), 1000))(w, r)
	}
	got = fetch(t, answers{cut(100_000, serve(`"1"`)), short, serve(`"1"`)}, unverified)
	if got.err != nil || !bytes.Equal(got.file.bytes, content) || len(got.requests) != 3 {
		t.Error("a 206 with another length than it says:", got.err, len(got.requests))
	}
	fetch(t, answers{raw("HTTP/1.0 200 OK\r\n\r\n" + string(content))}).mustBeRight(t, 1)
}

// A file whose size is published is stopped there, whether its server says another size or none.
func TestAPublishedSizeStopsTheFile(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{"said": serve(`"1"`), "not said": whole} {
		t.Run(name, func(t *testing.T) {
			got := fetch(t, answers{handler}, func(i *download.Item, _ *download.Downloader, _ *file) { i.Size, i.Hash.Field = 5, "the hub's list" })
			if got.mustFail(t, failure.WrongHash, 1, "the hub's list says"); len(got.file.bytes) > 5 {
				t.Errorf("%d bytes were written", len(got.file.bytes))
			}
		})
	}
}
