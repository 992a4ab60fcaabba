// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

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
