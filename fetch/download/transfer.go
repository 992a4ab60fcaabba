// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
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

// run fetches what is missing, and hashes the file.
func (t *transfer) run(ctx context.Context) error {
	t.ctx = ctx
	defer t.stop()
	err := t.hashTo(ctx)
	if err == nil {
		err = t.fetch(ctx, false)
	}
	if err != nil {
		return err
	}
	t.stop()
	return errors.Join(t.hashTo(ctx), t.checkContent())
}

// fetch fetches parts until all have come. A connection without one waits until another one is too
// slow.
func (t *transfer) fetch(ctx context.Context, helper bool) error {
	for t.misses() {
		err := t.attempts(ctx, helper)
		if errors.Is(err, errNoParts) {
			err = pause(ctx, slowPart/200)
		}
		if err != nil {
			return err
		}
	}
	return nil
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

// attempts fetches one part, or what others leave of it while an attempt has to wait for the next one.
func (t *transfer) attempts(ctx context.Context, helper bool) error {
	t.mutex.Lock()
	begun := t.furthest > 0
	t.mutex.Unlock()
	return t.d.retry(ctx, t.item, "the download broke off", begun, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		t.mutex.Lock()
		part, before := t.parts.take(t.chunk, cancel), t.furthest
		t.mutex.Unlock()
		if part == nil {
			t.d.quota(t.item.URL).answered()
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
		t.helpers.Go(func() {
			_ = t.fetch(t.helperCtx, true) // It may be that the server does not serve parts.
			t.mutex.Lock()
			defer t.mutex.Unlock()
			t.helping--
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
