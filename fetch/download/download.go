// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

// stall is how long a connection may bring no byte before it counts as cut.
const stall = time.Minute

// buffer is how many bytes are read, hashed and written at once.
const buffer = 256 << 10

// Getter sends a GET request. *guard.Client is one.
type Getter interface {
	Get(ctx context.Context, request guard.Request) (*http.Response, error)
}

// Downloader fetches. It is used by one goroutine.
type Downloader struct {
	Client Getter
	// ConnectFor is how long attempts may take until the first byte of a file comes, so that a wrong host, or a server that is
	// down, is reported soon; 0 is as long as RetryFor.
	ConnectFor time.Duration
	// RetryFor is how long attempts may bring no new byte after that before the fetch fails.
	RetryFor time.Duration
	Log      *report.Log
	Counter  *report.Counter
	// Jitter returns 0 to 1. nil is random.
	Jitter func() float64

	copied []byte
	// begun is true once a byte of a file has come.
	begun bool
}

// Item is what is fetched from one URL.
type Item struct {
	guard.Request
	Explain Explain
	// Size is the number of bytes that was published; -1 is unknown.
	Size int64
	Hash Hash
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
	io.Writer
	io.Seeker
	Truncate(size int64) error
}

// Fetched is what was written.
type Fetched struct {
	Bytes int64
	// Sum is the hash in hexadecimal digits.
	Sum string
}

// File fetches an item of at most limit bytes into an empty file. If the hash is wrong, and parts came from several connections, the item
// is fetched once more from the start.
func (d *Downloader) File(ctx context.Context, item Item, to Sink, limit int64) (Fetched, error) {
	t := newTransfer(d, item, to, limit)
	for again := false; ; again = true {
		if err := d.retry(ctx, "the download broke off", t.attempt); err != nil {
			return Fetched{}, err
		}
		sum := hex.EncodeToString(t.hash.Sum(nil))
		err := verify(item, sum, t.written)
		if err == nil {
			return Fetched{Bytes: t.written, Sum: sum}, nil
		}
		if !t.resumed || again {
			return Fetched{}, err
		}
		d.Log.Line("%v; the file came in several parts, so it is fetched once more from the start", err)
		if err := t.restart(); err != nil {
			return Fetched{}, err
		}
		t.whole, t.resumed, t.furthest = true, false, 0
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

// Bytes fetches an item of at most limit bytes into memory, with the headers of the answer.
func (d *Downloader) Bytes(ctx context.Context, item Item, limit int64) (body []byte, header http.Header, err error) {
	err = d.retry(ctx, "the request failed", func(ctx context.Context, first time.Duration) (bool, error) {
		ctx, watch := watched(ctx, first)
		defer watch.stop()
		response, err := d.Client.Get(ctx, item.Request)
		if err != nil {
			return false, broken(watch.reason(ctx, err), item.URL)
		}
		defer response.Body.Close() //nolint:errcheck // It was only read.
		if response.StatusCode != http.StatusOK {
			return false, refusal(response, item.URL, item.Explain, time.Now())
		}
		header = response.Header
		body, err = io.ReadAll(io.LimitReader(watch.reader(response.Body), limit+1))
		return false, readError(watch.reason(ctx, err), item.URL, int64(len(body)) > limit)
	})
	return body, header, err
}

func readError(err error, target *url.URL, tooLong bool) error {
	switch {
	case tooLong:
		return failure.New(failure.TooBig, "the answer of %s is too long: check spec.model.uri", guard.Show(target))
	case err != nil:
		return broken(err, target)
	}
	return nil
}

// stalled ends an attempt that has brought nothing for so long.
type stalled time.Duration

func (s stalled) Error() string {
	return fmt.Sprintf("no byte came for %s", time.Duration(s).Round(100*time.Millisecond))
}

// watchdog cancels a context when no byte has come for a minute, or the first byte not as soon as it must.
type watchdog struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc
	fed    bool
}

func watched(ctx context.Context, first time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{cancel: cancel}
	w.start(first)
	return ctx, w
}

func (w *watchdog) start(wait time.Duration) {
	w.timer = time.AfterFunc(wait, func() { w.cancel(stalled(wait)) })
}

// feed is called when bytes have come.
func (w *watchdog) feed() {
	if w.fed {
		w.timer.Reset(stall)
		return
	}
	w.timer.Stop()
	w.start(stall)
	w.fed = true
}

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// reason returns why a request with the watched context failed: the watchdog's reason if that was it.
func (w *watchdog) reason(ctx context.Context, err error) error {
	if cause, ok := errors.AsType[stalled](context.Cause(ctx)); ok && err != nil {
		return cause
	}
	return err
}

// reader returns a reader that feeds the watchdog.
func (w *watchdog) reader(from io.Reader) io.Reader { return &fed{from: from, watch: w} }

type fed struct {
	from  io.Reader
	watch *watchdog
}

func (f *fed) Read(into []byte) (int, error) {
	n, err := f.from.Read(into)
	if n > 0 {
		f.watch.feed()
	}
	return n, err
}

func newHash(item Item) hash.Hash {
	if item.Hash.New != nil {
		return item.Hash.New()
	}
	return sha256.New()
}
