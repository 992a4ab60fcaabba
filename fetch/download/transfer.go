// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

// transfer is an item on its way into a file. The goroutine of run fetches it, and decides; helpers fetch chunks of a large file over more
// connections.
type transfer struct {
	d     *Downloader
	item  Item
	to    Sink
	limit int64

	// hashing is held while the file's beginning is hashed: sums have seen its first hashed bytes.
	hashing sync.Mutex
	sums    sums
	hashed  int64

	mutex sync.Mutex
	parts parts
	// chunk is how many bytes a connection takes at once while there are helpers; 0 is without them.
	chunk int64
	// written is how many bytes the file has, and furthest the most it ever had.
	written, furthest int64
	// total is how many bytes the server says that the item has; -1 is unknown.
	total int64
	// etag is the strong validator of these bytes; empty is none.
	etag string
	// saved is when save was called last.
	saved time.Time

	// several is true if the file's bytes came by several answers, and whole if no part is to be asked for.
	several, whole bool
	helpers        sync.WaitGroup
	endHelpers     context.CancelFunc
}

// sums are the hashes of a file: the item's own, and SHA-256, which may be the same.
type sums struct {
	wanted, sha256 hash.Hash
	io.Writer
}

func newSums(item Item) sums {
	s := sums{sha256: sha256.New()}
	s.wanted, s.Writer = s.sha256, s.sha256
	if item.Hash.New != nil {
		s.wanted = item.Hash.New()
		s.Writer = io.MultiWriter(s.wanted, s.sha256)
	}
	return s
}

// fetched says what was hashed.
func (s sums) fetched(bytes int64) Fetched {
	return Fetched{Bytes: bytes, Sum: hex.EncodeToString(s.wanted.Sum(nil)), SHA256: hex.EncodeToString(s.sha256.Sum(nil))}
}

// run fetches what is missing, and hashes the file.
func (t *transfer) run(ctx context.Context) error {
	defer t.stop()
	for len(t.parts) > 0 {
		err := t.hashTo(ctx)
		for err == nil {
			err = t.attempts(ctx, false)
		}
		if !errors.Is(err, errNoParts) {
			return err
		}
		t.helpers.Wait() // What they have left is fetched without them.
	}
	return errors.Join(t.hashTo(ctx), t.checkContent())
}

// errNoParts ends a helper, and run's own requests: the server does not serve parts of the same file, or no part is free.
var errNoParts = errors.New("the server does not serve parts of this file")

// attempts fetches one part, or what others leave of it while an attempt has to wait for the next one.
func (t *transfer) attempts(ctx context.Context, helper bool) error {
	return t.d.retry(ctx, "the download broke off", func(ctx context.Context) (bool, error) {
		t.mutex.Lock()
		part, before := t.parts.take(t.chunk), t.furthest
		t.mutex.Unlock()
		if part == nil {
			return false, errNoParts
		}
		err := t.attempt(ctx, part, helper)
		t.mutex.Lock()
		defer t.mutex.Unlock()
		t.parts.give(part)
		return t.furthest > before, err
	})
}

func (t *transfer) attempt(ctx context.Context, part *part, helper bool) error {
	header := t.header(part)
	response, err := t.d.open(ctx, t.item, header)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // It was only read.
	if err := t.begin(response, part, header != nil, helper); err != nil {
		return err
	}
	if !helper {
		t.divide(ctx, response, part)
	}
	return t.copy(ctx, response.Body, part)
}

// divide starts helpers for a large file, if the server says that it serves parts of it. Whatever ends one, run fetches what it does not, and
// finds out why.
func (t *transfer) divide(ctx context.Context, response *http.Response, from *part) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	chunk := cmp.Or(t.d.Chunk, 32<<20)
	count := min(int64(t.d.Connections), (t.total-t.written)/chunk) - 1
	serves := response.StatusCode == http.StatusPartialContent || response.Header.Get("Accept-Ranges") == "bytes"
	if count < 1 || !serves || t.etag == "" || t.whole || t.chunk > 0 {
		return
	}
	t.chunk, t.several = chunk, true
	t.parts.split(from, t.chunk)
	ctx, t.endHelpers = context.WithCancel(ctx)
	for range count {
		t.helpers.Go(func() {
			for t.attempts(ctx, true) == nil { // Until none is free.
			}
		})
	}
}

// stop ends the helpers.
func (t *transfer) stop() {
	if t.endHelpers != nil {
		t.endHelpers()
		t.helpers.Wait()
	}
}

// header asks for a part, and for the whole item if it is another one now (RFC 9110, 13.1.5); nil asks for all of it.
func (t *transfer) header(part *part) http.Header {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.written == 0 && t.chunk == 0 || t.etag == "" || t.total < 0 || t.whole {
		return nil
	}
	return http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", part.begin, part.end-1)}, "If-Range": {t.etag}}
}

// begin decides what an answer's body is: the item from its start, its missing part, or neither.
func (t *transfer) begin(response *http.Response, part *part, asked, helper bool) error {
	switch status := response.StatusCode; {
	case asked && status == http.StatusPartialContent && t.isPart(response, part):
		if t.chunk == 0 {
			t.several = true
			t.d.Log.Line("the download is resumed at %s", report.Bytes(part.begin))
		}
		return t.check(response)
	case helper && !passes(status):
		return errNoParts
	case status == http.StatusOK && !helper:
		return t.beginWhole(response, part, asked)
	case asked && (status == http.StatusPartialContent || status == http.StatusRequestedRangeNotSatisfiable):
		return t.withoutParts(part)
	}
	return refusal(response, t.item)
}

// withoutParts makes the next attempt ask for the whole item.
func (t *transfer) withoutParts(part *part) error {
	if err := t.startOver(part); err != nil {
		return err
	}
	t.whole = true
	return &temporary{error: fmt.Errorf("%s: the server answered with another part, or with a part of another file", guard.Show(t.item.URL))}
}

func (t *transfer) beginWhole(response *http.Response, part *part, asked bool) error {
	if err := errors.Join(t.startOver(part), t.check(response)); err != nil {
		return err
	}
	t.whole = t.whole || asked
	total := response.ContentLength
	t.mutex.Lock()
	t.etag, t.total = strong(response.Header.Get("ETag")), total
	if total >= 0 {
		t.parts.size(total)
	}
	t.mutex.Unlock()
	if t.item.Size < 0 {
		t.d.Counter.Total(total)
	}
	if t.item.Size >= 0 && total >= 0 && total != t.item.Size {
		return verify(t.item, "", total)
	}
	return t.fits(total)
}

// isPart is true if an answer is the missing part of the same file.
func (t *transfer) isPart(response *http.Response, part *part) bool {
	return response.Header.Get("Content-Range") == fmt.Sprintf("bytes %d-%d/%d", part.begin, part.end-1, t.total) &&
		strong(response.Header.Get("ETag")) == t.etag && (response.ContentLength < 0 || response.ContentLength == part.end-part.begin)
}

// fits refuses more bytes than the item may have.
func (t *transfer) fits(bytes int64) error {
	if t.item.Size >= 0 && bytes > t.item.Size {
		return failure.New(failure.WrongHash, "%s has more than the %d bytes that %s says: check that nothing changes the file between the server and here",
			guard.Show(t.item.URL), t.item.Size, t.item.Hash.Field)
	}
	if bytes > t.limit {
		return failure.New(failure.TooBig, "%s has more than the %s that are left of spec.model.sizeLimit: raise it", guard.Show(t.item.URL), report.Bytes(t.limit))
	}
	return nil
}

// copy writes a body into a part of the file.
func (t *transfer) copy(ctx context.Context, body io.Reader, part *part) error {
	buffer := buffers.Get().(*[buffer]byte)
	defer buffers.Put(buffer)
	for part.begin < part.end {
		n, err := body.Read(buffer[:min(int64(len(buffer)), part.end-part.begin)])
		if writing := t.write(ctx, part, buffer[:n]); writing != nil {
			return writing
		}
		switch {
		case part.begin == part.end || err == nil:
		case !errors.Is(err, io.EOF):
			return broken(err, t.item.URL)
		case part.end == math.MaxInt64:
			t.mutex.Lock()
			t.parts.size(part.begin)
			t.mutex.Unlock()
		default:
			return &temporary{error: fmt.Errorf("%s: %d of %d bytes came", guard.Show(t.item.URL), part.begin, t.total)}
		}
	}
	return nil
}

// write writes bytes at the beginning of a part.
func (t *transfer) write(ctx context.Context, part *part, bytes []byte) error {
	if err := t.fits(part.begin + int64(len(bytes))); err != nil || len(bytes) == 0 {
		return err
	}
	n, err := t.to.WriteAt(bytes, part.begin)
	t.mutex.Lock()
	part.begin += int64(n)
	t.written += int64(n)
	t.furthest = max(t.furthest, t.written)
	due := time.Since(t.saved) >= saveEvery
	t.mutex.Unlock()
	t.d.begun.Store(true)
	t.d.Counter.Add(int64(n))
	if due {
		t.save()
	}
	return errors.Join(err, t.hashTo(ctx))
}

// hashTo hashes the file's beginning that is complete, unless another connection does so, or until the context ends.
func (t *transfer) hashTo(ctx context.Context) error {
	if !t.hashing.TryLock() {
		return nil
	}
	defer t.hashing.Unlock()
	t.mutex.Lock()
	end := max(t.total, t.written)
	if len(t.parts) > 0 {
		end = t.parts[0].begin
	}
	t.mutex.Unlock()
	if t.hashed >= end {
		return nil
	}
	buffer := buffers.Get().(*[buffer]byte)
	defer buffers.Put(buffer)
	for t.hashed < end && ctx.Err() == nil {
		n, err := t.to.ReadAt(buffer[:min(int64(len(buffer)), end-t.hashed)], t.hashed)
		_, _ = t.sums.Write(buffer[:n]) // It never fails.
		if t.hashed += int64(n); err != nil && (n == 0 || !errors.Is(err, io.EOF)) {
			return err
		}
	}
	return nil
}

// startOver makes all of the file missing, as one part that is taken.
func (t *transfer) startOver(taken *part) error {
	t.stop()
	t.mutex.Lock()
	if t.written > 0 {
		t.d.Log.Line("the download begins from the start: the server does not resume, or it has, or sent, another file")
	}
	t.d.Counter.Add(-t.written)
	t.written, t.etag, t.total, t.chunk = 0, "", -1, 0
	taken.begin, taken.end, t.parts = 0, math.MaxInt64, parts{taken}
	t.mutex.Unlock()
	t.several, t.hashed, t.sums = false, 0, newSums(t.item)
	t.save()
	return t.to.Truncate(0)
}

// strong returns an entity tag that If-Range may have, or nothing.
func strong(etag string) string {
	if strings.HasPrefix(etag, `"`) && strings.HasSuffix(etag, `"`) && len(etag) > 2 {
		return etag
	}
	return ""
}

// part is a missing part of a file: from begin to end, which is math.MaxInt64 where the size is unknown.
type part struct {
	begin, end int64
	// taken is true while a connection fetches it.
	taken bool
}

// parts are what is missing of a file, in order.
type parts []*part

// size cuts what is missing at the size of the file, once it is known.
func (p *parts) size(size int64) {
	for _, each := range *p {
		each.end = min(each.end, size)
	}
	*p = slices.DeleteFunc(*p, func(each *part) bool { return each.begin >= each.end && !each.taken })
}

// take takes the first part that no connection fetches, and at most a chunk of it; nil is none. A chunk of 0 bytes is all of it.
func (p *parts) take(chunk int64) *part {
	i := slices.IndexFunc(*p, func(each *part) bool { return !each.taken })
	if i < 0 {
		return nil
	}
	(*p)[i].taken = true
	p.split((*p)[i], chunk)
	return (*p)[i]
}

// split leaves a part at most a chunk, and frees the rest.
func (p *parts) split(from *part, chunk int64) {
	if chunk == 0 {
		return
	}
	if end := from.begin/chunk*chunk + chunk; end < from.end {
		*p = slices.Insert(*p, slices.Index(*p, from)+1, &part{begin: end, end: from.end})
		from.end = end
	}
}

// give gives back what is left of a part.
func (p *parts) give(taken *part) {
	if taken.taken = false; taken.begin >= taken.end {
		*p = slices.DeleteFunc(*p, func(each *part) bool { return each == taken })
	}
}
