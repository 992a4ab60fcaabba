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

	// several is true if the file's bytes came by several answers, and whole if the next attempt
	// asks for all of it.
	several, whole bool
	helpers        sync.WaitGroup
	// helping is how many there are.
	helping int64
	// ctx is that of run, and helperCtx that of the helpers: both outlive an attempt.
	ctx, helperCtx context.Context
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
	t.ctx = ctx
	defer t.stop()
	for err := t.hashTo(ctx); t.misses(); err = t.attempts(ctx, false) {
		if errors.Is(err, errNoParts) {
			err = waits(ctx)
		}
		if err != nil {
			return err
		}
	}
	t.stop()
	return errors.Join(t.hashTo(ctx), t.checkContent())
}

// misses is true until all parts have come.
func (t *transfer) misses() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return len(t.parts) > 0
}

// errNoParts says that other connections fetch all that is missing, and errNotServed ends a helper
// that got no part of the same file.
var (
	errNoParts   = errors.New("no part is free")
	errNotServed = errors.New("the server does not serve parts of this file")
)

// waits is how a connection waits until another one is too slow.
func waits(ctx context.Context) error {
	select {
	case <-time.After(slowPart / 200):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// attempts fetches one part, or what others leave of it while an attempt has to wait for the next one.
func (t *transfer) attempts(ctx context.Context, helper bool) error {
	t.mutex.Lock()
	begun := t.furthest > 0
	t.mutex.Unlock()
	return t.d.retry(ctx, "the download broke off", begun, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		t.mutex.Lock()
		part, before := t.parts.take(t.chunk, cancel), t.furthest
		t.mutex.Unlock()
		if part == nil {
			return false, errNoParts
		}
		err := t.attempt(ctx, part, helper)
		t.mutex.Lock()
		defer t.mutex.Unlock()
		t.parts.give(part)
		if _, ok := errors.AsType[*temporary](err); ok && part.begin >= part.end { // Another connection has taken the rest.
			err = nil
		}
		came := t.furthest - before
		return came >= stallBytes || came > 0 && !errors.Is(err, errStalled), err
	})
}

func (t *transfer) attempt(ctx context.Context, part *part, helper bool) error {
	header, asked := t.header(part, helper)
	response, err := t.d.open(ctx, t.item, header)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // It was only read.
	if err := t.begin(response, part, asked, header != nil, helper); err != nil {
		return err
	}
	if !helper {
		t.divide(response, part)
	}
	return t.copy(ctx, response.Body, part)
}

// divide starts helpers for a large file, if the server says that it serves parts of it, and again
// those that an answer has ended. Whatever ends one, run fetches what it does not, and finds out
// why.
func (t *transfer) divide(response *http.Response, from *part) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	chunk := cmp.Or(t.d.Chunk, 32<<20)
	count := min(int64(t.d.Connections), (t.total-t.written)/chunk) - 1 - t.helping
	serves := response.StatusCode == http.StatusPartialContent || t.written == 0 && response.Header.Get("Accept-Ranges") == "bytes"
	if count < 1 || !serves || t.etag == "" {
		return
	}
	if t.chunk == 0 {
		t.chunk, t.several = chunk, true
		t.parts.split(from, t.chunk)
		t.helperCtx, t.endHelpers = context.WithCancel(t.ctx)
	}
	t.helping += count
	for range count {
		t.helpers.Go(func() { t.help(t.helperCtx) })
	}
}

// help fetches parts until all have come, or the server does not serve them.
func (t *transfer) help(ctx context.Context) {
	for err := error(nil); err == nil; {
		if err = t.attempts(ctx, true); errors.Is(err, errNoParts) {
			err = waits(ctx)
		}
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.helping--
}

// stop ends the helpers.
func (t *transfer) stop() {
	if t.endHelpers != nil {
		t.endHelpers()
		t.helpers.Wait()
	}
}

// header asks for a part, and for the whole item if it is another one now (RFC 9110, 13.1.5); nil asks for all of it.
func (t *transfer) header(part *part, helper bool) (header http.Header, asked part) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.written == 0 && t.chunk == 0 || t.etag == "" || t.total < 0 || !helper && t.whole {
		if !helper {
			t.whole = false
		}
		return nil, *part
	}
	return http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", part.begin, part.end-1)}, "If-Range": {t.etag}}, *part
}

// begin decides what an answer's body is: the item from its start, its missing part, or neither.
func (t *transfer) begin(response *http.Response, part *part, wanted part, asked, helper bool) error {
	switch status := response.StatusCode; {
	case asked && status == http.StatusPartialContent && t.isPart(response, wanted):
		if t.chunk == 0 {
			t.several = true
			t.d.Log.Line("the download is resumed at %s", report.Bytes(part.begin))
		}
		return t.check(response)
	case helper && !passes(status):
		return errNotServed
	case status == http.StatusOK && !helper:
		return t.beginWhole(response, part)
	case asked && (status == http.StatusPartialContent || status == http.StatusRequestedRangeNotSatisfiable):
		t.whole = true
		return &temporary{error: fmt.Errorf("%s: the server answered with another part, or with a part of another file", guard.Show(t.item.URL))}
	}
	return refusal(response, t.item)
}

// isSame is true if an answer is all of the file of which there is a part already.
func (t *transfer) isSame(response *http.Response) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.written > 0 && t.etag != "" && strong(response.Header.Get("ETag")) == t.etag && response.ContentLength == t.total
}

// skip reads what is before a part, which then is all that no other connection fetches.
func (t *transfer) skip(response *http.Response, part *part) error {
	t.mutex.Lock()
	t.parts.join(part)
	begin := part.begin
	t.mutex.Unlock()
	if _, err := io.CopyN(io.Discard, response.Body, begin); err != nil {
		return broken(err, t.item.URL)
	}
	return t.check(response)
}

func (t *transfer) beginWhole(response *http.Response, part *part) error {
	if t.isSame(response) {
		return t.skip(response, part)
	}
	if t.item.Published != nil && t.item.Hash.Want == "" {
		t.item.Hash = t.item.Published(response.Header)
	}
	if err := errors.Join(t.startOver(part), t.check(response)); err != nil {
		return err
	}
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

// isPart is true if an answer is the part of the same file that was asked for.
func (t *transfer) isPart(response *http.Response, asked part) bool {
	return response.Header.Get("Content-Range") == fmt.Sprintf("bytes %d-%d/%d", asked.begin, asked.end-1, t.total) &&
		strong(response.Header.Get("ETag")) == t.etag && (response.ContentLength < 0 || response.ContentLength == asked.end-asked.begin)
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
	for {
		left := t.left(part)
		if left <= 0 {
			return nil
		}
		n, err := body.Read(buffer[:min(int64(len(buffer)), left)])
		if writing := t.write(ctx, part, buffer[:n]); writing != nil {
			return writing
		}
		switch {
		case err == nil || t.left(part) <= 0:
		case !errors.Is(err, io.EOF):
			return broken(err, t.item.URL)
		case left > math.MaxInt64/2 && part.begin >= t.item.Size: // Only now its size is known.
			t.mutex.Lock()
			t.parts.size(part.begin)
			t.mutex.Unlock()
		default:
			return &temporary{error: fmt.Errorf("%s: %d of %d bytes came", guard.Show(t.item.URL), part.begin, max(t.total, t.item.Size))}
		}
	}
}

// left returns how many bytes of a part its connection has still to fetch: another one may have
// taken the rest.
func (t *transfer) left(part *part) int64 {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return part.end - part.begin
}

// write writes bytes at the beginning of a part.
func (t *transfer) write(ctx context.Context, part *part, bytes []byte) error {
	if err := t.fits(part.begin + int64(len(bytes))); err != nil || len(bytes) == 0 {
		return err
	}
	n, err := t.to.WriteAt(bytes, part.begin)
	t.mutex.Lock()
	n = int(min(int64(n), part.end-part.begin)) // What another connection has taken meanwhile is the same, and counts there.
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
