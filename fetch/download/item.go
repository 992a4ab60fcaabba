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
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

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
