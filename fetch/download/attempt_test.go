// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

// A load balancer cuts every answer at two fifths of the file, so that no answer alone can bring
// it. One bad answer, or what an earlier process has left, decides for one attempt.
func TestOneBadAnswerDecidesForOneAttempt(t *testing.T) {
	size := len(content)
	good := cut(400_000, serve(`"1"`))
	for name, bad := range map[string]http.HandlerFunc{
		"200 without ranges": cut(400_000, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Length", fmt.Sprint(size))
			_, _ = w.Write(content)
		}),
		"200 without anything": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Length", fmt.Sprint(size))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"another part":             sendPart(fmt.Sprintf("bytes 399999-%d/%d", size-1, size), `"1"`, content[399_999:]),
		"another total":            sendPart(fmt.Sprintf("bytes 400000-%d/%d", size-1, size+1), `"1"`, content[400_000:]),
		"a part of another file":   sendPart(fmt.Sprintf("bytes 400000-%d/%d", size-1, size), `"2"`, content[400_000:]),
		"a part without its place": sendPart("", `"1"`, content[400_000:]),
		"416":                      status(http.StatusRequestedRangeNotSatisfiable),
		"503":                      status(http.StatusServiceUnavailable),
	} {
		t.Run(name, func(t *testing.T) {
			got := fetch(t, answers{good, bad, good})
			if got.err != nil || !bytes.Equal(got.file.bytes, content) || len(got.requests) > 6 || got.took > 30*time.Second {
				t.Errorf("%v after %s and %d requests\n%s", got.err, got.took, len(got.requests), got.log)
			}
			if strings.Contains(got.log, "from the start") {
				t.Errorf("what was there is fetched again:\n%s", got.log)
			}
		})
	}
	wrong := func(i *download.Item, _ *download.Downloader, f *file) {
		f.bytes = flipped(bytes.Clone(content))
		i.Kept = &download.Kept{ETag: `"1"`, Size: int64(size), Missing: [][2]int64{{500_000, int64(size)}}}
	}
	got := fetch(t, answers{good}, wrong)
	got.mustBeRight(t, 5)
	fetch(t, answers{slowly(serve(`"1"`))}, parallel, wrong).mustBeRight(t, 16+9)
}

// A connection that is silent, or slow, keeps the others waiting for seconds alone.
func TestAConnectionThatIsSlow(t *testing.T) {
	large := bytes.Repeat(content, 32)
	for name, bad := range map[string]func(http.ResponseWriter, *http.Request){
		"silent":                 hang,
		"silent after its start": cutOff(100_000),
		"slow":                   func(w http.ResponseWriter, r *http.Request) { slow(w, r, large) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var count atomic.Int32
				d, closer := downloader(func(w http.ResponseWriter, r *http.Request) {
					if count.Add(1) == 3 {
						bad(w, r)
						return
					}
					w.Header().Set("ETag", `"1"`)
					http.ServeContent(pausing{w}, r, "", time.Time{}, bytes.NewReader(large)) // 1.6 MB/s.
				})
				defer closer()
				d.Connections, d.Chunk = 4, 8<<20
				item, to := theItem(), &file{}
				item.Hash.Want = sum(large)
				begin := time.Now()
				if _, err := d.File(t.Context(), item, to, 64<<20); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); took > 12*time.Second { // 5 s with four good connections.
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

// cutOff sends a part's first bytes, and then nothing.
func cutOff(after int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(&silencer{ResponseWriter: w, left: after, done: r.Context().Done()}, r, "", time.Time{}, bytes.NewReader(bytes.Repeat(content, 32)))
	}
}

type silencer struct {
	http.ResponseWriter
	left int
	done <-chan struct{}
}

func (s *silencer) Write(all []byte) (int, error) {
	n, err := s.ResponseWriter.Write(all[:min(len(all), s.left)])
	if s.left -= n; s.left == 0 {
		_ = http.NewResponseController(s.ResponseWriter).Flush()
		<-s.done
		return n, io.ErrClosedPipe
	}
	return n, err
}

// slow sends 20 kB in a second.
func slow(w http.ResponseWriter, r *http.Request, all []byte) {
	w.Header().Set("ETag", `"1"`)
	http.ServeContent(trickling{w}, r, "", time.Time{}, bytes.NewReader(all))
}

type trickling struct{ http.ResponseWriter }

func (s trickling) Write(all []byte) (int, error) {
	for written := 0; written < len(all); {
		<-time.After(100 * time.Millisecond) // The time of the bubble.
		n, err := s.ResponseWriter.Write(all[written:min(written+2000, len(all))])
		_ = http.NewResponseController(s.ResponseWriter).Flush()
		if written += n; err != nil {
			return written, err
		}
	}
	return len(all), nil
}

// Each way in which servers say when they answer again is waited for, also before the first byte.
func TestServersThatSayLater(t *testing.T) {
	unix := func(w http.ResponseWriter, r *http.Request) {
		status(429, "X-RateLimit-Reset", fmt.Sprint(time.Now().Unix()+26))(w, r)
	}
	date := func(w http.ResponseWriter, r *http.Request) {
		status(503, "Retry-After", time.Now().UTC().Add(90*time.Second).Format(http.TimeFormat))(w, r)
	}
	code := func(code string) func(*download.Item, *download.Downloader, *file) {
		return func(i *download.Item, _ *download.Downloader, _ *file) {
			i.Explain = func(*http.Response, []byte) (string, string) { return code, "" }
		}
	}
	many := func(first http.HandlerFunc) (list answers) {
		for range 12 {
			list = append(list, first)
		}
		return append(list, serve(`"1"`))
	}
	for name, each := range map[string]struct {
		server answers
		code   string
		took   time.Duration
	}{
		"the hub":            {answers{status(429, "RateLimit", `"api";r=0;t=26`, "RateLimit-Policy", `"fixed window";"api";q=500;w=300`), serve(`"1"`)}, "", 26 * time.Second},
		"one of two quotas":  {answers{status(429, "RateLimit", `"api";r=0;t=26, "pages";r=5;t=90`), serve(`"1"`)}, "", 26 * time.Second},
		"an earlier draft":   {answers{status(429, "RateLimit", `limit=100, remaining=0, reset=26`), serve(`"1"`)}, "", 26 * time.Second},
		"RateLimit-Reset":    {answers{status(429, "RateLimit-Reset", "26"), serve(`"1"`)}, "", 26 * time.Second},
		"seconds":            {answers{status(429, "X-RateLimit-Reset", "26"), serve(`"1"`)}, "", 26 * time.Second},
		"a time":             {answers{unix, serve(`"1"`)}, "", 26 * time.Second},
		"Retry-After first":  {answers{status(429, "Retry-After", "7", "RateLimit", `"api";r=0;t=26`), serve(`"1"`)}, "", 7 * time.Second},
		"503":                {answers{status(503, "Retry-After", "400"), serve(`"1"`)}, "", 400 * time.Second},
		"a date":             {answers{date, serve(`"1"`)}, "", 90 * time.Second},
		"zero":               {answers{status(429, "Retry-After", "0"), serve(`"1"`)}, "", time.Second},
		"less than zero":     {answers{status(429, "Retry-After", "-5"), serve(`"1"`)}, "", time.Second},
		"nonsense":           {answers{status(429, "RateLimit", "nonsense", "X-RateLimit-Reset", "-5"), serve(`"1"`)}, "", time.Second},
		"SlowDown":           {many(status(503)), "SlowDown", 241 * time.Second},
		"Throttling":         {many(status(400)), "Throttling", 241 * time.Second},
		"429 without a word": {many(status(429)), "", 241 * time.Second},
		"RequestTimeout":     {answers{status(400), serve(`"1"`)}, "RequestTimeout", time.Second},
		"the last request": {answers{func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("RateLimit", `"api";r=0;t=26`)
			cut(100, serve(`"1"`))(w, r)
		}, serve(`"1"`)}, "", 26 * time.Second},
		"the last request, redirected": {answers{func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("RateLimit", `"api";r=0;t=26`)
			http.Redirect(w, r, "/other.bin", http.StatusFound)
		}, cut(100, serve(`"1"`)), serve(`"1"`)}, "", 26 * time.Second},
		"the first for this pod": {answers{func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("RateLimit", `"burst";r=9;t=26`)
			w.Header().Set("RateLimit-Policy", `"daily";q=10000;w=86400, "burst";q=10;w=26`)
			cut(100, serve(`"1"`))(w, r)
		}, serve(`"1"`)}, "", time.Second},
		"not the last": {answers{func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("RateLimit", `"api";r=1;t=26`)
			cut(100, serve(`"1"`))(w, r)
		}, serve(`"1"`)}, "", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			got := fetch(t, each.server, connectFor, code(each.code))
			if got.mustBeRight(t, len(each.server)); got.took.Round(time.Second) != each.took {
				t.Errorf("took %s, want %s", got.took, each.took)
			}
			if told := strings.Contains(got.log, "[RateLimited] the server has answered enough for now; the next request is sent at 2000-01-01T00:0"); told != (each.took > time.Second) {
				t.Error(got.log)
			}
		})
	}
	spread := func(_ *download.Item, d *download.Downloader, _ *file) { d.Spread = 0.5 }
	if got := fetch(t, answers{status(429, "RateLimit", `"api";r=0;t=26`), serve(`"1"`)}, connectFor, spread); got.err != nil || got.took != 39*time.Second {
		t.Error("with a spread:", got.took, got.err)
	}
	got := fetch(t, answers{status(429, "Retry-After", "7200")}, connectFor)
	got.mustFail(t, failure.RateLimited, 1, "the next attempt is of use at 2000-01-01T02:00:00Z")
	got = fetch(t, answers{status(429, "RateLimit", `"api";r=0;t=100`)}, connectFor)
	if got.mustFail(t, failure.RateLimited, 0, "429 Too Many Requests"); got.took > 30*time.Minute {
		t.Error(got.took)
	}
}

// Pods behind one address that start at once share the quota of a hub: all complete, and no window
// has more requests than the quota, refused ones included. One pod alone waits only where its files
// are more than the quota, and several only where they need more than a fifth of it.
func TestManyPodsAtARateLimitedHub(t *testing.T) {
	const quota, window = 500, 300 * time.Second
	for _, each := range []struct {
		starts, files int
		most          time.Duration
	}{
		{1, 400, time.Second}, {1, 1200, 4 * window}, {2, 200, 2 * window}, {30, 20, 6 * window}, {50, 1, time.Second}, {100, 8, 8 * window},
		{300, 1, 4 * window}, {300, 2, 4 * window},
	} {
		t.Run(fmt.Sprint(each.starts, each.files), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hub := &limited{quota: quota, window: window, begin: time.Now(), requests: map[int]int{}}
				item := theItem()
				item.Hash.Want = sum([]byte("weights"))
				var group sync.WaitGroup
				for i := range each.starts {
					d, closer := downloader(hub.answer)
					defer closer()
					d.Connections, d.ConnectFor, d.Spread = 8, 10*time.Second, math.Mod(float64(i)*math.Phi, 1)
					group.Go(func() {
						_, _, err := d.Read(t.Context(), item, 2<<20)
						if err == nil {
							err = d.Each(t.Context(), each.files, func(ctx context.Context, _ int) error {
								_, err := d.File(ctx, item, &file{}, 2<<20)
								return err
							})
						}
						if err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				took := time.Since(hub.begin)
				t.Log(each, hub.requests, took)
				for window, requests := range hub.requests {
					if requests > quota {
						t.Errorf("%v: %d requests in window %d", each, requests, window)
					}
				}
				if took > each.most {
					t.Errorf("%v: took %s", each, took)
				}
			})
		})
	}
}

// limited is a hub that answers so many requests in each window.
type limited struct {
	quota    int
	window   time.Duration
	begin    time.Time
	mutex    sync.Mutex
	requests map[int]int
}

func (l *limited) answer(w http.ResponseWriter, _ *http.Request) {
	l.mutex.Lock()
	since := time.Since(l.begin)
	l.requests[int(since/l.window)]++
	left := l.quota - l.requests[int(since/l.window)]
	l.mutex.Unlock()
	w.Header().Set("RateLimit-Policy", fmt.Sprintf(`"fixed window";"api";q=%d;w=%d`, l.quota, int(l.window/time.Second)))
	w.Header().Set("RateLimit", fmt.Sprintf(`"api";r=%d;t=%d`, max(0, left), int((l.window-since%l.window)/time.Second)+1))
	if left < 0 {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	_, _ = io.WriteString(w, "weights")
}

// A host that cannot be connected to is told soon for each file, and not where a file has begun.
func TestABlockedHostOfALaterFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, closer := downloader(cut(100_000, serve(`"1"`)))
		defer closer()
		d.ConnectFor = 10 * time.Second
		good := d.Client
		d.Client = &vanishing{Getter: good, from: 2, until: time.Now().Add(20 * time.Minute)}
		begin := time.Now()
		if _, err := d.File(t.Context(), theItem(), &file{}, 2<<20); err != nil || time.Since(begin) < 20*time.Minute {
			t.Error("a server that was away for 20 minutes:", time.Since(begin), err)
		}
		for op, client := range map[string]download.Getter{
			"nothing answers": blackhole{}, "dial": unmade("dial"), "a proxy": unmade("proxyconnect"), "a proxy's answer": unmade("502 Bad Gateway"), "TLS": unmade("remote error"),
		} {
			d.Client = client
			begin = time.Now()
			_, err := d.File(t.Context(), theItem(), &file{}, 2<<20)
			if took := time.Since(begin); err == nil || failure.Of(err).Word != failure.Unreachable || took > 11*time.Second || !strings.Contains(err.Error(), "no attempt brought more for ") {
				t.Error(op, took, err)
			}
		}
	})
}

// vanishing is not there for some time, from a request on.
type vanishing struct {
	download.Getter
	from, count int
	until       time.Time
}

func (v *vanishing) Get(ctx context.Context, request guard.Request) (*http.Response, error) {
	if v.count++; v.count >= v.from && time.Now().Before(v.until) {
		return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	}
	return v.Getter.Get(ctx, request)
}

// A connection that was good for longer than is retried, and then too slow, has made progress.
func TestAGoodConnectionThatBecomesSlow(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(&tiring{ResponseWriter: w, left: len(content) - 1000}, r, "", time.Time{}, bytes.NewReader(content))
	}
	got := fetch(t, answers{slow, serve(`"1"`)}, connectFor, func(_ *download.Item, d *download.Downloader, _ *file) { d.RetryFor = time.Minute })
	if got.mustBeRight(t, 2); got.took < 4*time.Minute {
		t.Error("shows nothing:", got.took)
	}
}

// tiring sends 32 KiB in 8 seconds, and what is left of it one byte in 20.
type tiring struct {
	http.ResponseWriter
	left int
}

func (w *tiring) Write(all []byte) (written int, err error) {
	for written < len(all) && err == nil {
		n, wait := min(32<<10, len(all)-written, w.left), 8*time.Second
		if w.left == 0 {
			n, wait = 1, 20*time.Second
		}
		<-time.After(wait) // The time of the bubble.
		_, err = w.ResponseWriter.Write(all[written : written+n])
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		written, w.left = written+n, max(0, w.left-n)
	}
	return written, err
}

// Where a list has the size of a file, it says whether an answer without a length was cut, or is of
// another file.
func TestAnAnswerWithoutALengthOfAKnownSize(t *testing.T) {
	unsaid := func(all []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer connection.Close()
			_, _ = connection.Write(append([]byte("HTTP/1.0 200 OK\r\nContent-Encoding: aws-chunked\r\n\r\n"), all...))
		}
	}
	listed := func(i *download.Item, _ *download.Downloader, _ *file) { i.Hash.Want, i.Size = "", int64(len(content)) }
	got := fetch(t, answers{unsaid(content[:500_000]), unsaid(content)}, listed, opened)
	got.mustBeRight(t, 2)
	got = fetch(t, answers{unsaid(append(slices.Clip(content), 'x'))}, listed, opened)
	got.mustFail(t, failure.WrongHash, 1, "has more than the 1048576 bytes")
}

// opened is an item of a bucket, whose request is signed.
func opened(i *download.Item, d *download.Downloader, _ *file) {
	request := i.Request
	i.Open = func(ctx context.Context, header http.Header) (*http.Response, error) {
		request.Header = header
		return d.Client.Get(ctx, request)
	}
}

// unmade is a client whose connections fail at once.
type unmade string

func (u unmade) Get(context.Context, guard.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: string(u), Err: io.ErrUnexpectedEOF}
}
