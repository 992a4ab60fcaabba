// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The limit of the writes for one owner.
const (
	// burst is the number of writes without a limit, interval the time between two of them after these.
	burst    = 10
	interval = 20 * time.Second
	// calm is how many writes must be available again before an owner is no longer contested.
	// Otherwise its status would change with each write.
	calm = 3
	// fewest is how many owners are held in any case.
	fewest = 1024
)

// Limiter bounds the writes for an owner that other clients may undo: after a burst of 10, 3 a
// minute. A change of the owner's spec, which is a new generation, starts it anew. The zero value
// and nil are ready for use; nil has no limit.
type Limiter struct {
	// Clock is the real clock if it is nil.
	Clock clock.PassiveClock

	mu      sync.Mutex
	buckets map[types.UID]*bucket
	// sweepAt is the number of buckets, fewest at least, at which those that are full are removed.
	sweepAt int
}

// bucket holds when all writes of an owner are available again, which is a write later with each
// write (a generic cell rate algorithm).
type bucket struct {
	generation int64
	fullAt     time.Time
	contested  *ContestedError
}

// at returns when a number of writes is available.
func (b *bucket) at(writes int) time.Time {
	return b.fullAt.Add(-time.Duration(burst-writes) * interval)
}

// ContestedError reports that other clients undo each write for an object, so that the number of
// writes is limited.
type ContestedError struct {
	// Kind and Name are those of the object that is written.
	Kind, Name string
	// Field is the path of a field that is modified, or empty if the object is deleted or created.
	Field string
	// Manager is the other field manager, or empty if it is not known.
	Manager string
	// Next is when the next write is allowed, and RetryAfter the time until the next reconcile.
	Next       time.Time
	RetryAfter time.Duration
	// Exhausted is true before Next.
	Exhausted bool
}

func (e *ContestedError) Error() string {
	what := "it is undone repeatedly"
	if e.Field != "" {
		what = fmt.Sprintf("%s is modified repeatedly by %s", e.Field, describeManager(e.Manager))
	}
	return fmt.Sprintf("%s %q: %s; it is written at most 3 times a minute, next after %s; stop the other client, or change this object",
		e.Kind, e.Name, what, e.Next.UTC().Truncate(time.Second).Format(time.RFC3339))
}

// describeManager returns a field manager as it is named in a message.
func describeManager(manager string) string {
	if manager == "" {
		return "another field manager"
	}
	return fmt.Sprintf("field manager %q", manager)
}

// Take takes one write for an owner. If none is available, it returns what is contested, with the
// time of the next one.
func (l *Limiter) Take(owner client.Object, what ContestedError) *ContestedError {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	b := l.bucket(owner, now)
	if next := b.at(1); now.Before(next) {
		what.Next = next
		b.contested = &what
		return b.state(now)
	}
	if b.fullAt.Before(now) {
		b.fullAt = now
	}
	b.fullAt = b.fullAt.Add(interval)
	return nil
}

// Knows reports whether writes for an owner were taken, in whatever generation. It forgets an owner
// some time after its last write.
func (l *Limiter) Knows(owner client.Object) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buckets[owner.GetUID()] != nil
}

// Return returns a write that was taken and not made.
func (l *Limiter) Return(owner client.Object) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(owner, l.now())
	b.fullAt = b.fullAt.Add(-interval)
}

// Contested returns what of an owner is contested: from the time at which the limit was reached
// until about a minute has passed without a write. Otherwise it returns nil.
func (l *Limiter) Contested(owner client.Object) *ContestedError {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[owner.GetUID()]
	if b == nil || b.generation != owner.GetGeneration() {
		return nil
	}
	return b.state(l.now())
}

func (b *bucket) state(now time.Time) *ContestedError {
	end := b.at(calm)
	if !now.Before(end) {
		b.contested = nil
	}
	if b.contested == nil {
		return nil
	}
	contested := *b.contested
	contested.Exhausted, contested.RetryAfter = now.Before(contested.Next), end.Sub(now)
	if contested.Exhausted {
		contested.RetryAfter = contested.Next.Sub(now)
	}
	return &contested
}

// bucket returns the bucket of an owner, a full one for a new generation.
func (l *Limiter) bucket(owner client.Object, now time.Time) *bucket {
	b := l.buckets[owner.GetUID()]
	if b != nil && b.generation == owner.GetGeneration() {
		return b
	}
	if l.buckets == nil {
		l.buckets = map[types.UID]*bucket{}
	}
	// Full buckets, those of owners that were deleted among them, are as good as none.
	if len(l.buckets) >= max(fewest, l.sweepAt) {
		maps.DeleteFunc(l.buckets, func(_ types.UID, b *bucket) bool { return !now.Before(b.fullAt) })
		l.sweepAt = 2 * len(l.buckets)
	}
	b = &bucket{generation: owner.GetGeneration()}
	l.buckets[owner.GetUID()] = b
	return b
}

func (l *Limiter) now() time.Time {
	if l.Clock == nil {
		return time.Now()
	}
	return l.Clock.Now()
}
