// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limit bounds how often the controller writes, and how long its workers wait for the
// cache. Each write of a controller passes its client, so no other client can cause more writes by
// undoing each of them.
package limit

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
)

const (
	// burst is the number of writes for an owner without a limit. After these, interval is the
	// time between two of them, and statusInterval that between two writes of its status.
	burst          = 10
	interval       = 20 * time.Second
	statusInterval = time.Second
	// calm is how many writes must be available again before an owner is no longer contested.
	// Otherwise its status would change with each write.
	calm = 3
	// fewest is how many owners are held in any case.
	fewest = 1024
)

// ContestedError reports that a write was not sent, because other clients undo the writes for its
// owner.
type ContestedError struct {
	// Object is the kind and the name of the object that is written.
	Object string
	// Field is the path of a field that is modified, or empty if the whole object is.
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
	if e.Field != "" || e.Manager != "" {
		what = cmp.Or(e.Field, "it") + " is modified repeatedly by " + Describe(e.Manager)
	}
	return fmt.Sprintf("%s: %s; it is written at most 3 times a minute, next after %s; stop the other client, or change this object",
		e.Object, what, e.Next.UTC().Truncate(time.Second).Format(time.RFC3339))
}

// LaterError reports that a status was not written, because it was written too often before.
type LaterError struct{ After time.Duration }

func (e *LaterError) Error() string {
	return fmt.Sprintf("status is written at most once a second, next in %s", e.After)
}

// Describe returns a field manager as it is named in a message.
func Describe(manager string) string {
	if manager == "" {
		return "another field manager"
	}
	return fmt.Sprintf("field manager %q", manager)
}

// Manager returns the other field manager with the latest change, except of status.
func Manager(obj client.Object) string {
	last := -1
	entries := obj.GetManagedFields()
	for i := range entries {
		if strings.HasPrefix(entries[i].Manager, api.FieldManager) || entries[i].Subresource == "status" {
			continue
		}
		if last < 0 || !entries[i].Time.Before(entries[last].Time) {
			last = i
		}
	}
	if last < 0 {
		return ""
	}
	return entries[last].Manager
}

// limiter holds the state of the owners for which something was written lately.
type limiter struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	buckets map[types.UID]*bucket
	// sweepAt is the number of buckets, fewest at least, at which those without a meaning are
	// removed.
	sweepAt int
}

// Owner is what writes count for: an object of one generation. It is an option of each write of a
// client of New, which knows no other way to whom a write counts. The nil Owner is without a limit.
type Owner struct {
	*limiter
	uid        types.UID
	generation int64
	// uncounted is true for writes that no other client can cause.
	uncounted bool
}

// The verbs whose option an Owner is. It changes no request.
var (
	_ client.CreateOption           = (*Owner)(nil)
	_ client.PatchOption            = (*Owner)(nil)
	_ client.DeleteOption           = (*Owner)(nil)
	_ client.SubResourcePatchOption = (*Owner)(nil)
)

// ApplyToCreate implements client.CreateOption.
func (*Owner) ApplyToCreate(*client.CreateOptions) {}

// ApplyToPatch implements client.PatchOption.
func (*Owner) ApplyToPatch(*client.PatchOptions) {}

// ApplyToDelete implements client.DeleteOption.
func (*Owner) ApplyToDelete(*client.DeleteOptions) {}

// ApplyToSubResourcePatch implements client.SubResourcePatchOption.
func (*Owner) ApplyToSubResourcePatch(*client.SubResourcePatchOptions) {}

// bucket holds when all writes of an owner are available again, which is a write later with each
// write (a generic cell rate algorithm), and the same of its status.
type bucket struct {
	generation           int64
	fullAt, statusFullAt time.Time
	contested            *ContestedError
	refusals             refusals
}

// For returns the owner of an object for the writes of a client, nil if the client is none of New.
// Another generation starts the limit anew, but not that of status.
func For(c client.Client, uid types.UID, generation int64) *Owner {
	if limited, ok := c.(*limited); ok {
		return &Owner{limiter: limited.limiter, uid: uid, generation: generation}
	}
	return nil
}

// Uncounted returns the owner for a write of another desired state than the one that was written
// last. No other client has undone that, so it does not count.
func (o *Owner) Uncounted() *Owner {
	if o == nil {
		return nil
	}
	of := *o
	of.uncounted = true
	return &of
}

// Contested returns what of the owner is contested: from the time at which the limit was reached
// until about a minute has passed without a write. Otherwise it returns nil.
func (o *Owner) Contested() (contested *ContestedError) {
	o.inspect(func(b *bucket) {
		if b.generation == o.generation {
			contested = b.state(o.clock.Now())
		}
	})
	return contested
}

// SetManager completes an error for the owner, and what Contested returns from now on, with the
// field that another client modifies, and its field manager.
func (o *Owner) SetManager(contested *ContestedError, field, manager string) {
	contested.Field, contested.Manager = field, manager
	o.inspect(func(b *bucket) {
		if b.contested != nil {
			b.contested.Field, b.contested.Manager = field, manager
		}
	})
}

// HasRecentWrites reports whether there were writes for the owner, in whatever generation. It is
// forgotten some time after its last write.
func (o *Owner) HasRecentWrites() (known bool) {
	o.inspect(func(b *bucket) { known = !b.fullAt.IsZero() })
	return known
}

// inspect calls a function with the bucket of the owner, if something was written for it lately.
func (o *Owner) inspect(read func(*bucket)) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := o.buckets[o.uid]; b != nil {
		read(b)
	}
}

// write sends a write, unless none is available for the owner. One that the API server did not
// accept, or that changed nothing, does not count.
func (o *Owner) write(what ContestedError, send func() (changed bool, err error)) error {
	began := o.clock.Now()
	if !o.uncounted {
		if contested := o.take(what, began); contested != nil {
			return contested
		}
	}
	changed, err := send()
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := o.bucket(began); !o.uncounted && (err != nil || !changed) {
		b.fullAt = b.fullAt.Add(-interval)
	}
	return err
}

func (o *Owner) take(what ContestedError, now time.Time) *ContestedError {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.bucket(now)
	if next := available(b.fullAt, 1, interval); now.Before(next) {
		what.Next = next
		b.contested = &what
		return b.state(now)
	}
	b.fullAt = later(b.fullAt, now).Add(interval)
	return nil
}

// writeStatus sends a write of status, unless it is too early for one.
func (o *Owner) writeStatus(send func() error) error {
	o.mu.Lock()
	now := o.clock.Now()
	b := o.bucket(now)
	wait := available(b.statusFullAt, 1, statusInterval).Sub(now)
	if wait <= 0 {
		b.statusFullAt = later(b.statusFullAt, now).Add(statusInterval)
	}
	o.mu.Unlock()
	if wait > 0 {
		return &LaterError{After: wait}
	}
	return send()
}

// available returns when a number of writes is available.
func available(fullAt time.Time, writes int, interval time.Duration) time.Time {
	return fullAt.Add(-time.Duration(burst-writes) * interval)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// state returns what is contested, nil if nothing is. It is the caller's own.
func (b *bucket) state(now time.Time) *ContestedError {
	end := available(b.fullAt, calm, interval)
	if !now.Before(end) {
		b.contested = nil
	}
	if b.contested == nil {
		return nil
	}
	c := *b.contested // The limiter's own has a lock.
	c.Exhausted, c.RetryAfter = now.Before(c.Next), end.Sub(now)
	if c.Exhausted {
		c.RetryAfter = c.Next.Sub(now)
	}
	return &c
}

// bucket returns the bucket of an owner. That of another generation has all its writes.
func (o *Owner) bucket(now time.Time) *bucket {
	b := o.buckets[o.uid]
	if b != nil && b.generation != o.generation {
		*b = bucket{generation: o.generation, statusFullAt: b.statusFullAt}
	}
	if b != nil {
		if b.fullAt.Sub(now) > burst*interval || b.statusFullAt.Sub(now) > burst*statusInterval { // The clock was set back.
			b.fullAt, b.statusFullAt = now, now
		}
		return b
	}
	// Those of owners that were deleted mean nothing after a while, and neither do full ones.
	if len(o.buckets) >= max(fewest, o.sweepAt) {
		maps.DeleteFunc(o.buckets, func(_ types.UID, b *bucket) bool {
			return !now.Before(later(later(b.fullAt, b.statusFullAt), b.refusals.end()))
		})
		o.sweepAt = 2 * len(o.buckets)
	}
	b = &bucket{generation: o.generation}
	o.buckets[o.uid] = b
	return b
}
