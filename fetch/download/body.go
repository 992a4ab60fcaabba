// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// firstByte is how long an answer may take until its first byte: a cache that fetches the file
	// itself first takes minutes.
	firstByte = 5 * time.Minute
	// stall is how long after that a connection may need for each stallBytes, 1 KiB/s, before it is
	// closed and the transfer is resumed. What it has brought in less is no progress.
	stall      = time.Minute
	stallBytes = 60 << 10
)

// errStalled ends a request to which too few bytes came for as long as its body waits.
var errStalled = errors.New("less than 1 KiB/s came")

// body is the body of an answer. It ends with an error when bytes come too slowly.
type body struct {
	io.ReadCloser
	// ctx is that of the request, which cancel ends.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// timer cuts the connection after wait, and bytes is what came since it was set.
	timer *time.Timer
	wait  time.Duration
	bytes int
}

func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if b.bytes += n; b.bytes >= stallBytes || n > 0 && b.wait == firstByte {
		b.wait, b.bytes = stall, 0
		b.timer.Reset(b.wait)
	}
	if cause := context.Cause(b.ctx); cause != nil && err != nil && !errors.Is(err, io.EOF) {
		if err = cause; errors.Is(cause, errStalled) {
			err = fmt.Errorf("%w for %s", cause, b.wait)
		}
	}
	return n, err
}

// Close ends the request.
func (b *body) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}
