// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
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

// parallel makes the content 16 chunks over 4 connections.
func parallel(_ *download.Item, d *download.Downloader, _ *file) { d.Connections, d.Chunk = 4, 64<<10 }

// observed counts the requests for parts, and the most at once, until their answers are closed.
type observed struct {
	download.Getter
	mutex           sync.Mutex
	parts, now, max int
}

func (o *observed) Get(ctx context.Context, request guard.Request) (*http.Response, error) {
	o.mutex.Lock()
	if request.Header.Get("Range") != "" {
		o.parts++
	}
	o.now++
	o.max = max(o.max, o.now)
	o.mutex.Unlock()
	response, err := o.Getter.Get(ctx, request)
	if err == nil {
		response.Body = &observedBody{response.Body, o}
	}
	return response, err
}

type observedBody struct {
	io.ReadCloser
	by *observed
}

func (b *observedBody) Close() error {
	b.by.mutex.Lock()
	b.by.now--
	b.by.mutex.Unlock()
	return b.ReadCloser.Close()
}

// slowly makes each part of 16 KiB take 10 ms.
func slowly(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { handler(pausing{w}, r) }
}

type pausing struct{ http.ResponseWriter }

func (p pausing) Write(all []byte) (int, error) {
	for written := 0; written < len(all); {
		<-time.After(10 * time.Millisecond) // The time of the bubble.
		n, err := p.ResponseWriter.Write(all[written:min(written+16<<10, len(all))])
		if written += n; err != nil {
			return written, err
		}
	}
	return len(all), nil
}

func TestALargeFileComesOverSeveralConnections(t *testing.T) {
	var seen observed
	got := fetch(t, answers{slowly(serve(`"1"`))}, parallel, func(_ *download.Item, d *download.Downloader, _ *file) { seen.Getter, d.Client = d.Client, &seen })
	if got.mustBeRight(t, len(got.requests)); seen.max != 4 || seen.parts < 10 || seen.parts > 15 {
		t.Errorf("%d requests for parts, %d at once\n%s%v", seen.parts, seen.max, got.log, got.requests)
	}
	if one := 64 * 10 * time.Millisecond; got.took > one/3 {
		t.Errorf("took %s, and one connection takes %s", got.took, one)
	}
	for _, header := range got.requests[1:] {
		if header.Get("Range") != "" && header.Get("If-Range") != `"1"` {
			t.Error(header)
		}
	}
}

// Where parts cannot be trusted, one connection fetches all of it, whatever the others were answered.
func TestALargeFileOfAServerWithoutParts(t *testing.T) {
	first := func(parts http.HandlerFunc) answers {
		return answers{func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") == "" {
				slowly(serve(`"1"`))(w, r)
				return
			}
			parts(w, r)
		}}
	}
	for name, server := range map[string]answers{
		"no entity tag":   {slowly(func(w http.ResponseWriter, r *http.Request) { serve("")(w, r) })},
		"weak entity tag": {slowly(serve(`W/"1"`))},
		"no parts":        {slowly(whole)},
		"another file":    first(serve(`"2"`)),
		"416":             first(status(416)),
		"the whole file":  first(whole),
		"another part":    first(sendPart(fmt.Sprintf("bytes 0-1/%d", len(content)), `"1"`, []byte("xx"))),
		"another total": first(func(w http.ResponseWriter, r *http.Request) {
			sendPart(fmt.Sprintf("bytes %d-%d/%d", begin(r), begin(r)+1, len(content)+1), `"1"`, []byte("xx"))(w, r)
		}),
		"one connection at once": {alone(slowly(serve(`"1"`)))},
	} {
		t.Run(name, func(t *testing.T) {
			got := fetch(t, server, parallel)
			if got.mustBeRight(t, len(got.requests)); got.took > 5*time.Second || len(got.requests) > 24 {
				t.Errorf("took %s and %d requests", got.took, len(got.requests))
			}
		})
	}
}

// alone answers one request at a time, and refuses others.
func alone(handler http.HandlerFunc) http.HandlerFunc {
	var now atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) {
		defer now.Add(-1)
		if now.Add(1) > 1 {
			status(http.StatusServiceUnavailable)(w, r)
			return
		}
		handler(w, r)
	}
}

func begin(r *http.Request) (at int) {
	_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &at)
	return at
}

// Connections break everywhere, and the file changes once while it is fetched.
func TestALargeFileOverBadConnections(t *testing.T) {
	var count atomic.Int32
	bad := func(w http.ResponseWriter, r *http.Request) {
		switch n := int(count.Add(1)); n % 4 {
		case 0:
			status(503)(w, r)
		case 1, 2:
			cut(n*7919%150_000+1, serve(`"1"`))(w, r)
		default:
			serve(`"1"`)(w, r)
		}
	}
	saves := func(i *download.Item, _ *download.Downloader, _ *file) {
		i.Save = func(kept *download.Kept) {
			if kept != nil && kept.Size != int64(len(content)) {
				t.Error("what is said to be kept:", kept)
			}
		}
	}
	got := fetch(t, answers{bad}, parallel, saves)
	got.mustBeRight(t, len(got.requests))

	other := bytes.Repeat([]byte("x"), len(content))
	old := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"0"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(other))
	}
	changes := func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1) < 8 {
			cut(90_000, slowly(old))(w, r)
		} else {
			slowly(serve(`"1"`))(w, r)
		}
	}
	count.Store(0)
	got = fetch(t, answers{changes}, parallel)
	got.mustBeRight(t, len(got.requests))
}

// A volume that fails ends all connections.
func TestALargeFileOnAFullVolume(t *testing.T) {
	got := fetch(t, answers{slowly(serve(`"1"`))}, parallel, func(_ *download.Item, d *download.Downloader, f *file) {
		d.Client = &failing{Getter: d.Client, file: f}
	})
	got.mustFail(t, failure.NoSpace, 0, "no space left on device")
}

// What is kept of a file is continued, and verified.
func TestWhatIsKeptIsContinued(t *testing.T) {
	for name, each := range map[string]struct {
		kept     download.Kept
		change   func([]byte) []byte
		requests []string
	}{
		"all of it":           {download.Kept{Size: 1 << 20}, nil, nil},
		"a part":              {download.Kept{ETag: `"1"`, Size: 1 << 20, Missing: [][2]int64{{1000, 1 << 20}}}, nil, []string{"bytes=1000-1048575"}},
		"holes":               {download.Kept{ETag: `"1"`, Size: 1 << 20, Missing: [][2]int64{{10, 20}, {500, 600}}}, nil, []string{"bytes=10-19", "bytes=500-599"}},
		"all, with an error":  {download.Kept{Size: 1 << 20}, flipped, []string{""}},
		"part, with an error": {download.Kept{ETag: `"1"`, Size: 1 << 20, Missing: [][2]int64{{1000, 1 << 20}}}, flipped, []string{"bytes=1000-1048575", ""}},
		"all, cut later":      {download.Kept{Size: 1 << 20}, func(b []byte) []byte { return b[:100] }, []string{""}},
		"all, grown later":    {download.Kept{Size: 1 << 20}, grown, nil},
		"a part, cut later":   {download.Kept{ETag: `"1"`, Size: 1 << 20, Missing: [][2]int64{{1000, 2000}}}, func(b []byte) []byte { return b[:100] }, []string{"bytes=1000-1999", ""}},
		"a part, grown later": {download.Kept{ETag: `"1"`, Size: 1 << 20, Missing: [][2]int64{{1000, 2000}}}, grown, []string{"bytes=1000-1999"}},
		"of another file":     {download.Kept{ETag: `"0"`, Size: 1 << 20, Missing: [][2]int64{{1000, 1 << 20}}}, nil, []string{"bytes=1000-1048575"}},
		"nonsense":            {download.Kept{ETag: `"1"`, Size: 1 << 20, Missing: [][2]int64{{1000, 1 << 40}}}, nil, []string{""}},
		"without a tag":       {download.Kept{Size: 1 << 20, Missing: [][2]int64{{1000, 1 << 20}}}, nil, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			got := fetch(t, answers{serve(`"1"`)}, func(_ *download.Item, _ *download.Downloader, f *file) {
				f.bytes = bytes.Clone(content)
				for _, missing := range each.kept.Missing {
					clear(f.bytes[min(missing[0], 1<<20):min(missing[1], 1<<20)])
				}
				if each.change != nil {
					f.bytes = each.change(f.bytes)
				}
			}, func(i *download.Item, _ *download.Downloader, _ *file) { i.Kept = &each.kept })
			got.mustBeRight(t, len(each.requests))
			for i, want := range each.requests {
				if header := got.requests[i]; header.Get("Range") != want {
					t.Error(header, want)
				}
			}
		})
	}
}

// Before a start that continues has its first answer, the log knows what is there, and of how much.
func TestTheProgressOfWhatIsKept(t *testing.T) {
	late := func(w http.ResponseWriter, r *http.Request) {
		<-time.After(12 * time.Second) // The time of the bubble.
		serve(`"1"`)(w, r)
	}
	got := fetch(t, answers{late}, func(i *download.Item, _ *download.Downloader, f *file) {
		f.bytes, i.Kept = bytes.Clone(content), &download.Kept{ETag: `"1"`, Size: 1 << 20, Missing: [][2]int64{{1 << 19, 1 << 20}}}
	})
	if got.mustBeRight(t, 1); !strings.Contains(got.log, "progress: 512.0 KiB of 1.0 MiB (50 %), 0 B/s\n") {
		t.Error(got.log)
	}
}

func flipped(b []byte) []byte { b[7]++; return b }
func grown(b []byte) []byte   { return append(b, "more"...) }

// What a process leaves is what another one can continue from.
func TestWhatIsKept(t *testing.T) {
	for name, each := range map[string]struct {
		etag string
		want string
		hash string
	}{"of a part": {`"1"`, `&{"1" 1048576 [[100000 1048576]]}`, sum(content)}, "without a tag": {"", "<nil>", sum(content)}, "that no hash verifies": {`"1"`, "never", ""}} {
		var kept any = "never"
		got := fetch(t, answers{cut(100_000, serve(each.etag)), status(404)}, func(i *download.Item, _ *download.Downloader, _ *file) {
			i.Hash.Want, i.Save = each.hash, func(now *download.Kept) { kept = now }
		})
		if got.mustFail(t, failure.NotFound, 2, "404"); fmt.Sprint(kept) != each.want {
			t.Errorf("%s: %v, want %s", name, kept, each.want)
		}
	}
}

// 400 files of a server with a latency of 20 ms take 1 s over 8 connections.
func TestManySmallFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, closer := downloader(func(w http.ResponseWriter, r *http.Request) {
			<-time.After(20 * time.Millisecond) // The time of the bubble.
			serve(`"1"`)(w, r)
		})
		defer closer()
		d.Connections = 8
		begin := time.Now()
		err := d.Each(t.Context(), 400, func(ctx context.Context, _ int) error {
			_, err := d.File(ctx, theItem(), &file{}, 2<<20)
			return err
		})
		if took := time.Since(begin); err != nil || took != time.Second {
			t.Error(took, err)
		}
	})
}

// Many files share the connections.
func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen observed
		d, closer := downloader(slowly(serve(`"1"`)))
		seen.Getter, d.Client = d.Client, &seen
		d.Connections, d.Chunk = 4, 64<<10
		var group sync.WaitGroup
		for range 6 {
			group.Go(func() {
				if fetched, err := d.File(t.Context(), theItem(), &file{}, 2<<20); err != nil || fetched.Sum != sum(content) || fetched.SHA256 != sum(content) {
					t.Error(fetched, err)
				}
			})
		}
		group.Wait()
		closer()
		if seen.max != 4 {
			t.Errorf("%d connections at once", seen.max)
		}
	})
}
