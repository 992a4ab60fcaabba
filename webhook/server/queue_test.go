// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func address(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }

// TestTurns: each source has its turn, however many requests of another one wait.
func TestTurns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		arrive string // Sources, in the order of their requests.
		want   string
	}{
		"one source":                   {"aaaa", "aaaa"},
		"a late one beside a crowd":    {"aaaaaab", "aabaaaa"},
		"two late ones beside a crowd": {"aaaaabbc", "aabcabaa"},
		"alternating":                  {"ababab", "ababab"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(1, 100)
			var tickets []*ticket
			for _, source := range tc.arrive {
				ticket := &ticket{source: address(int(source)), weight: 1}
				if !q.enter(ticket) {
					t.Fatal("refused")
				}
				tickets = append(tickets, ticket)
			}
			var got strings.Builder
			for range tc.arrive {
				at := slices.IndexFunc(tickets, hasTurn)
				got.WriteByte(tickets[at].source.As4()[3])
				q.release(tickets[at])
				tickets = slices.Delete(tickets, at, at+1)
			}
			if got.String() != tc.want {
				t.Errorf("turns of %s, want %s", got.String(), tc.want)
			}
		})
	}
}

func hasTurn(t *ticket) bool {
	if t.ready == nil {
		return true
	}
	select {
	case <-t.ready:
		return true
	default:
		return false
	}
}

// TestQueueLimit: a source that has less than its share is accepted when all is taken.
func TestQueueLimit(t *testing.T) {
	t.Parallel()
	q := newQueue(1, 4)
	accepted := func(source int) bool { return q.enter(&ticket{source: address(source), weight: 1}) }
	for n, tc := range []struct {
		source int
		want   bool
	}{
		{1, true}, {1, true}, {1, true}, {1, true}, {1, false},
		{2, true}, {2, true}, {2, false}, {1, false}, {3, true}, {3, false},
	} {
		if got := accepted(tc.source); got != tc.want {
			t.Errorf("request %d, of source %d: accepted %v, want %v", n, tc.source, got, tc.want)
		}
	}
	if accepted(9); len(q.sources) > 4 {
		t.Errorf("%d sources are remembered", len(q.sources))
	}
}

// TestQueueWaits: the ways in which a wait ends.
func TestQueueWaits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end  func(q *queue, holder *ticket, c *conn, cancel func())
		want error
	}{
		"the turn":              {func(q *queue, holder *ticket, _ *conn, _ func()) { q.release(holder) }, nil},
		"the time":              {func(*queue, *ticket, *conn, func()) {}, errOverCapacity},
		"the connection closed": {func(_ *queue, _ *ticket, c *conn, _ func()) { close(c.gone) }, errGone},
		"the client went away":  {func(_ *queue, _ *ticket, _ *conn, cancel func()) { cancel() }, errGone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				q, c := newQueue(10, 10), &conn{gone: make(chan struct{})}
				holder, waiting := &ticket{weight: 99}, &ticket{weight: 1}
				if err := q.acquire(ctx, c, holder, time.Second); err != nil {
					t.Fatal(err)
				}
				got := make(chan error)
				go func() { got <- q.acquire(ctx, c, waiting, time.Second) }()
				synctest.Wait()
				tc.end(q, holder, c, cancel)
				if err := <-got; err != tc.want { //nolint:errorlint // It is not wrapped.
					t.Errorf("%v, want %v", err, tc.want)
				}
				if tc.want != nil {
					q.release(holder)
				} else {
					q.release(waiting)
				}
				if q.granted != 0 || q.total != 0 || len(q.sources) != 0 || len(q.turns) != 0 {
					t.Errorf("left: %+v", q)
				}
			})
		})
	}
}

// TestQueueProperty: whatever happens, no more than the capacity is granted, and nothing is left.
func TestQueueProperty(t *testing.T) {
	t.Parallel()
	q := newQueue(100, 1000)
	var granted atomic.Int64
	var clients sync.WaitGroup
	for n := range 200 {
		random := rand.New(rand.NewPCG(1, uint64(n)))
		clients.Go(func() {
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(3000))*time.Microsecond)
				mine := &ticket{source: address(n % 7), weight: 1 + random.Int64N(120)}
				if q.acquire(ctx, &conn{gone: make(chan struct{})}, mine, time.Second) == nil {
					if now := granted.Add(mine.weight); now > 100 {
						t.Error(fmt.Errorf("%d of 100 are granted", now))
					}
					granted.Add(-mine.weight)
					q.release(mine)
				}
				cancel()
			}
		})
	}
	clients.Wait()
	if q.granted != 0 || q.total != 0 || len(q.sources) != 0 || len(q.turns) != 0 {
		t.Errorf("left: %d granted, %d requests, %d sources, %d turns", q.granted, q.total, len(q.sources), len(q.turns))
	}
}
