// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"errors"
	"hash"
	"io"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// buffer is how many bytes are read, hashed and written at once.
const buffer = 256 << 10

// Getter sends a GET request. *guard.Client is one.
type Getter interface {
	Get(ctx context.Context, request guard.Request) (*http.Response, error)
}

// Downloader fetches. Its methods may be called concurrently.
type Downloader struct {
	Client Getter
	// ConnectFor is how long attempts may find no server, for each file, or one that cannot serve,
	// until the first byte of a file comes, so that a wrong host, or a server that is down, is
	// reported soon; next says what does not count. 0 is as long as RetryFor.
	ConnectFor time.Duration
	// RetryFor is how long attempts may bring no new byte after that before the fetch fails.
	RetryFor time.Duration
	// Connections is how many connections all files have together; 0 is one.
	Connections int
	// Chunk is how many bytes of a large file one request asks for; 0 is 32 MiB.
	Chunk   int64
	Log     *report.Log
	Counter *report.Counter
	// Jitter returns 0 to 1. nil is random.
	Jitter func() float64
	// Spread is a number from 0 to 1 that is another one for each pod: how much longer it leaves a
	// server alone than that says.
	Spread float64

	// begun is true once a byte of a file has come.
	begun atomic.Bool
	once  sync.Once
	slots chan struct{}
	// held is until when no request is sent, in nanoseconds since 1970.
	held atomic.Int64
}

// buffers has those that are free.
var buffers = sync.Pool{New: func() any { return new([buffer]byte) }}

// acquire waits for one of the connections, and returns what releases it.
func (d *Downloader) acquire(ctx context.Context) (release func(), err error) {
	d.once.Do(func() { d.slots = make(chan struct{}, max(1, d.Connections)) })
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for wait := time.Until(time.Unix(0, d.held.Load())); wait > 0; wait = time.Until(time.Unix(0, d.held.Load())) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			<-d.slots
			return nil, context.Cause(ctx)
		}
	}
	return func() { <-d.slots }, nil
}

// hold lets all connections wait, because one of them was told to.
func (d *Downloader) hold(wait time.Duration) {
	d.held.Store(max(d.held.Load(), time.Now().Add(wait).UnixNano()))
}

// Each calls one for each of so many, as many at once as there are connections. The first error ends all.
func (d *Downloader) Each(ctx context.Context, count int, one func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(max(1, d.Connections), count) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < count && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := one(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// Item is what is fetched from one URL.
type Item struct {
	guard.Request
	// Open sends the request with these headers, instead of the Downloader's client, which does so if Open is nil.
	Open    func(context.Context, http.Header) (*http.Response, error)
	Explain Explain
	// Size is the number of bytes that was published; -1 is unknown.
	Size int64
	Hash Hash
	// Published, if it is set, returns the hash that an answer has, where no list has it.
	Published func(http.Header) Hash
	// Kept is what an earlier process left in the file; nil is nothing. Save, if it is set, is called about each second, and after a
	// failure, with what a later process can continue from; nil is nothing. It may be called concurrently.
	Kept *Kept
	Save func(*Kept)
}

// Hash is what verifies an item.
type Hash struct {
	// Name and Field say which hash it is, and which field or server has published it.
	Name, Field string
	// Want is the hash in hexadecimal digits; empty verifies nothing.
	Want string
	// New is sha256.New if it is nil.
	New func() hash.Hash
}

// Sink is the file that an item is written into.
type Sink interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
}

// Fetched is what was written.
type Fetched struct {
	Bytes int64
	// Sum is the item's hash, and SHA256 that of the bytes, in hexadecimal digits.
	Sum, SHA256 string
	// Verified is true if the item's hash was published.
	Verified bool
}

// File fetches an item of at most limit bytes into a file. If the hash is wrong, and parts came by several answers, the item is fetched
// once more from the start. Nothing is fetched if all of it was kept.
func (d *Downloader) File(ctx context.Context, item Item, to Sink, limit int64) (Fetched, error) {
	t := &transfer{d: d, item: item, to: to, limit: limit, sums: newSums(item), parts: parts{{end: math.MaxInt64}}, total: -1, saved: time.Now()}
	if err := t.keep(); err != nil {
		return Fetched{}, err
	}
	again := 1
	if t.several { // What an earlier process has left.
		again++
	}
	for ; ; again-- {
		if err := t.run(ctx); err != nil {
			t.save()
			return Fetched{}, err
		}
		fetched := t.sums.fetched(t.written)
		fetched.Verified = t.item.Hash.Want != ""
		err := verify(t.item, fetched.Sum, t.written)
		if err == nil || !t.several || again == 0 {
			return fetched, err
		}
		d.Log.Line("%v; the file came in several parts, so it is fetched again from the start", err)
		if err := t.startOver(&part{}); err != nil {
			return Fetched{}, err
		}
		t.furthest = 0
	}
}

func verify(item Item, sum string, written int64) error {
	if item.Size >= 0 && written != item.Size {
		return failure.New(failure.WrongHash, "%s has %d bytes, and %s says %d: check that nothing changes the file between the server and here",
			guard.Show(item.URL), written, item.Hash.Field, item.Size)
	}
	if item.Hash.Want != "" && sum != item.Hash.Want {
		return failure.New(failure.WrongHash, "%s is %s, %s says %s: check %s, and whether the file at %s was replaced",
			item.Hash.Name, sum, item.Hash.Field, item.Hash.Want, item.Hash.Field, guard.Show(item.URL))
	}
	return nil
}

// Verify reads a file that is there already. It is an error if the item's hash does not prove that it is the item.
func Verify(item Item, from io.Reader, counter *report.Counter) (Fetched, error) {
	sums := newSums(item)
	written, err := io.Copy(io.MultiWriter(sums, counter), from)
	if err == nil && item.Hash.Want == "" {
		err = errors.New("nothing says which hash it has")
	}
	fetched := sums.fetched(written)
	return fetched, errors.Join(err, verify(item, fetched.Sum, written))
}

// Read returns an item of at most limit bytes, and the headers of the answer.
func (d *Downloader) Read(ctx context.Context, item Item, limit int64) (body []byte, header http.Header, err error) {
	err = d.ask(ctx, item, func(answer *http.Response) (err error) {
		header = answer.Header
		if body, err = io.ReadAll(io.LimitReader(answer.Body, limit+1)); err != nil {
			return broken(err, item.URL)
		}
		if int64(len(body)) > limit {
			return failure.New(failure.TooBig, "the answer of %s is too long: check spec.model.uri", guard.Show(item.URL))
		}
		return nil
	})
	return body, header, err
}

// Header returns the headers of the answer alone.
func (d *Downloader) Header(ctx context.Context, item Item) (header http.Header, err error) {
	err = d.ask(ctx, item, func(answer *http.Response) error {
		header = answer.Header
		return nil
	})
	return header, err
}

// ask requests an item, with the usual attempts, until one gets an answer that it can read.
func (d *Downloader) ask(ctx context.Context, item Item, one func(*http.Response) error) error {
	return d.retry(ctx, "the request failed", false, func(ctx context.Context) (bool, error) {
		response, err := d.open(ctx, item, nil)
		if err != nil {
			return false, err
		}
		defer response.Body.Close() //nolint:errcheck // It was only read.
		if response.StatusCode != http.StatusOK {
			return false, refusal(response, item)
		}
		return false, one(response)
	})
}

// open sends the request for an item, with more headers. Reading the body of the answer fails when it comes too slowly.
func (d *Downloader) open(ctx context.Context, item Item, header http.Header) (response *http.Response, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	if item.Open != nil {
		response, err = item.Open(ctx, header)
	} else {
		request := item.Request
		request.Header = header
		response, err = d.Client.Get(ctx, request)
	}
	if err != nil {
		cancel(nil)
		return nil, broken(err, item.URL)
	}
	if after := modeluri.Exhausted(response.Header, time.Now()); after > 0 && after <= d.RetryFor && response.StatusCode < 400 { // This was the last request for now.
		d.hold(after + time.Duration(d.Spread*float64(after)))
	}
	timer := time.AfterFunc(firstByte, func() { cancel(errStalled) })
	response.Body = &body{ReadCloser: response.Body, ctx: ctx, cancel: cancel, timer: timer, wait: firstByte}
	return response, nil
}

// saveEvery is how often what is kept is saved.
const saveEvery = time.Second

// Kept says what a file has of an item, so that a later process continues. It is not believed: the item's hash proves in the end that
// the whole file is the item, and without a hash nothing is kept.
type Kept struct {
	// ETag and Size are what the server said of the item. Where nothing is missing, the file is verified, and no server is asked.
	ETag string `json:"etag,omitempty"`
	Size int64  `json:"size"`
	// Missing are the parts that were not fetched: the first byte, and the one after the last.
	Missing [][2]int64 `json:"missing,omitempty"`
}

// keep continues what is kept, or empties the file.
func (t *transfer) keep() error {
	kept := t.item.Kept
	if kept == nil || !t.accepts(kept) {
		return t.to.Truncate(0)
	}
	t.written, t.parts = kept.Size, nil
	for _, each := range kept.Missing {
		t.parts = append(t.parts, &part{begin: each[0], end: each[1]})
		t.written -= each[1] - each[0]
	}
	t.etag, t.total, t.several, t.furthest = kept.ETag, kept.Size, true, t.written
	if t.item.Size < 0 {
		t.d.Counter.Total(kept.Size)
	}
	t.d.Counter.Kept(t.written)
	return t.to.Truncate(kept.Size) // Whatever the file has lost or got since, its hash is that of so many bytes.
}

// accepts is true for what can be continued: its parts are in order, within the file, and of one that can be asked for.
func (t *transfer) accepts(kept *Kept) bool {
	if t.item.Hash.Want == "" || kept.Size <= 0 || t.fits(kept.Size) != nil || t.item.Size >= 0 && kept.Size != t.item.Size {
		return false
	}
	end := int64(0)
	for _, each := range kept.Missing {
		if each[0] < end || each[1] <= each[0] || each[1] > kept.Size {
			return false
		}
		end = each[1]
	}
	return end == 0 || strong(kept.ETag) != ""
}

// save tells what a later process can continue from.
func (t *transfer) save() {
	if t.item.Save == nil || t.item.Hash.Want == "" {
		return
	}
	var kept *Kept
	t.mutex.Lock()
	t.saved = time.Now()
	if t.etag != "" && t.total >= 0 && t.written > 0 {
		kept = &Kept{ETag: t.etag, Size: t.total}
		for _, each := range t.parts {
			if each.begin < each.end {
				kept.Missing = append(kept.Missing, [2]int64{each.begin, each.end})
			}
		}
	}
	t.mutex.Unlock()
	t.item.Save(kept)
}
