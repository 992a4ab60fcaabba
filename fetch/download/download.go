// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package download fetches files over HTTP: it resumes what was cut, retries what may be cured by another attempt, and
// verifies the hash.
package download

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
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
	begun  atomic.Bool
	once   sync.Once
	slots  chan struct{}
	quotas sync.Map
}

// buffers has those that are free.
var buffers = sync.Pool{New: func() any { return new([buffer]byte) }}

// acquire waits for one of the connections, and until a request may be sent. It returns what releases
// the connection.
func (d *Downloader) acquire(ctx context.Context, q *quota) (release func(), err error) {
	d.once.Do(func() { d.slots = make(chan struct{}, max(1, d.Connections)) })
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := q.wait(ctx); err != nil {
		<-d.slots
		return nil, err
	}
	return func() { <-d.slots }, nil
}

// pause waits, or until the context ends, whose cause it returns.
func pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
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
