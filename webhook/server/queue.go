// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// queue is a weighted semaphore that is fair to sources: while requests wait, it grants one of
// each source in turn, and those of one source in their order. (The semaphore of
// golang.org/x/sync has one order for all, so a source with a thousand requests would delay
// one with a single request by all of them.)
type queue struct {
	// capacity is the sum of the weights that are granted at a time.
	capacity int64
	// most is the number of requests that are granted or wait. When so many do, a source is
	// refused that has its share of them, which is the same for each source. So it may be
	// exceeded by a source that comes when others have taken all.
	most int

	mu      sync.Mutex
	granted int64
	total   int
	sources map[netip.Addr]*sourceQueue
	// spare is used again for the next source that comes.
	spare *sourceQueue
	// turns are the sources with waiting requests; the first is next.
	turns []netip.Addr
}

// sourceQueue are the requests of one source.
type sourceQueue struct {
	total   int
	waiting []*ticket
}

// ticket is a request that waits, or whose turn has come. ready is closed when a request that
// has to wait has its turn.
type ticket struct {
	source netip.Addr
	weight int64
	ready  chan struct{}
}

func newQueue(capacity int64, most int) *queue {
	return &queue{capacity: capacity, most: most, sources: map[netip.Addr]*sourceQueue{}}
}

// acquire waits until a ticket has its turn, which release ends. It returns errOverCapacity if
// too many wait or the turn does not come in time, and errGone if the connection has ended.
func (q *queue) acquire(ctx context.Context, c *conn, t *ticket, timeout time.Duration) error {
	t.weight = min(t.weight, q.capacity)
	if !q.enter(t) {
		return errOverCapacity
	}
	if t.ready == nil {
		return nil
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	err := errGone
	select {
	case <-t.ready:
		return nil
	case <-timer.C:
		err = errOverCapacity
	case <-c.gone:
	case <-ctx.Done():
	}
	q.leave(t)
	return err
}

// enter adds a ticket, which has its turn unless it has got a channel. It returns false if too
// many wait.
func (q *queue) enter(t *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.of(t.source)
	q.total++
	s.total++
	if q.total > q.most && s.total > q.most/len(q.sources) {
		q.remove(t)
		return false
	}
	if len(q.turns) == 0 && q.granted+t.weight <= q.capacity {
		q.granted += t.weight
		return true
	}
	t.ready = make(chan struct{})
	s.waiting = append(s.waiting, t)
	if len(s.waiting) == 1 {
		q.turns = append(q.turns, t.source)
	}
	return true
}

func (q *queue) of(source netip.Addr) *sourceQueue {
	s := q.sources[source]
	if s == nil {
		s, q.spare = q.spare, nil
		if s == nil {
			s = new(sourceQueue)
		}
		q.sources[source] = s
	}
	return s
}

// release ends the turn of a request.
func (q *queue) release(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.granted -= t.weight
	q.remove(t)
}

// leave removes a request that does not wait any longer.
func (q *queue) leave(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.sources[t.source]
	if at := slices.Index(s.waiting, t); at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
		if len(s.waiting) == 0 {
			q.turns = slices.DeleteFunc(q.turns, func(source netip.Addr) bool { return source == t.source })
		}
	} else {
		q.granted -= t.weight // Its turn came at the same moment.
	}
	q.remove(t)
}

func (q *queue) remove(t *ticket) {
	q.total--
	s := q.sources[t.source]
	if s.total--; s.total == 0 {
		delete(q.sources, t.source)
		q.spare = s
	}
	q.grant()
}

// grant gives turns as long as the capacity allows. A heavy request that is next is waited
// for, so that light ones do not delay it forever.
func (q *queue) grant() {
	for len(q.turns) > 0 {
		source := q.turns[0]
		s := q.sources[source]
		t := s.waiting[0]
		if q.granted+t.weight > q.capacity {
			return
		}
		q.granted += t.weight
		close(t.ready)
		q.turns = q.turns[1:]
		if s.waiting = s.waiting[1:]; len(s.waiting) > 0 {
			q.turns = append(q.turns, source)
		}
	}
}
