// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Memory holds what a process has observed of the children of a kind, so that it does not
// repeat reads and writes. After a restart it is empty, which costs one read for a child
// whose fields admission rewrote, and allows new bursts of repairs. The zero value and nil
// are ready for use; nil holds nothing.
type Memory struct {
	// Clock is the real clock if it is nil.
	Clock clock.PassiveClock

	mu        sync.Mutex
	rewrites  bounded[types.UID, []rewrite]
	repairs   bounded[repairKey, *repairs]
	contested bounded[types.UID, *ContestedError]
	created   bounded[createdKey, struct{}]
	written   bounded[types.UID, string]
}

// maxEntries bounds each of the maps. A map that is full is emptied: a lost entry costs a
// read or a few more repairs.
const maxEntries = 4096

type bounded[K comparable, V any] map[K]V

func (m *bounded[K, V]) set(key K, value V) {
	if _, present := (*m)[key]; *m == nil || !present && len(*m) >= maxEntries {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// The limits for repairs of one field of one child.
const (
	// repairBurst is the number of repairs without a limit, repairInterval the time between
	// two of them after these.
	repairBurst    = 5
	repairInterval = 20 * time.Second
	// contestedPeriod is how long a child stays contested after its last repair.
	contestedPeriod = time.Minute
)

type repairKey struct {
	child types.UID
	field string
}

type repairs struct {
	limiter *rate.Limiter
	// next is when the next repair is allowed, zero until the limit was reached once.
	next time.Time
}

type createdKey struct {
	owner types.UID
	kind  string
}

func (m *Memory) now() time.Time {
	if m.Clock == nil {
		return time.Now()
	}
	return m.Clock.Now()
}

// setRewrites stores which fields of a child admission rewrote; none is a valid value.
func (m *Memory) setRewrites(child types.UID, rewrites []rewrite) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(rewrites) == 0 {
		delete(m.rewrites, child)
		return
	}
	m.rewrites.set(child, rewrites)
}

// areKnownRewrites reports whether each of the differences is stored as a rewrite.
func (m *Memory) areKnownRewrites(child types.UID, differences []rewrite) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range differences {
		if !slices.ContainsFunc(m.rewrites[child], func(e rewrite) bool { return e.hash == differences[i].hash }) {
			return false
		}
	}
	return true
}

// setWritten stores the hash of the desired state that was written to a child.
func (m *Memory) setWritten(child types.UID, desired client.Object) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written.set(child, desired.GetAnnotations()[AnnotationHash])
}

// wasWritten reports whether this process wrote this desired state to the child last. If the
// annotation on the child has another hash, another field manager modified the annotation.
func (m *Memory) wasWritten(child types.UID, desired client.Object) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	hash, known := m.written[child]
	return known && hash == desired.GetAnnotations()[AnnotationHash]
}

// setCreated stores that a child of this kind was created for the owner.
func (m *Memory) setCreated(owner types.UID, kind string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.created.set(createdKey{owner, kind}, struct{}{})
}

func (m *Memory) wasCreated(owner types.UID, kind string) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, created := m.created[createdKey{owner, kind}]
	return created
}

// allowRepair takes one repair from the limit of each of the fields. If no limit allows a
// repair, it returns the field whose next repair is allowed first, and that time.
func (m *Memory) allowRepair(child types.UID, drifts []drift) (limited *drift, next time.Time) {
	if m == nil {
		return nil, time.Time{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, allowed := m.now(), false
	for i := range drifts {
		at := m.repairsOf(child, drifts[i].field).take(now)
		if at.IsZero() {
			allowed = true
		} else if limited == nil || at.Before(next) {
			limited, next = &drifts[i], at
		}
	}
	if allowed {
		return nil, time.Time{}
	}
	return limited, next
}

func (m *Memory) repairsOf(child types.UID, field string) *repairs {
	key := repairKey{child, field}
	if existing := m.repairs[key]; existing != nil {
		return existing
	}
	added := &repairs{limiter: rate.NewLimiter(rate.Every(repairInterval), repairBurst)}
	m.repairs.set(key, added)
	return added
}

// take takes one repair and returns zero, or returns when the next repair is allowed.
func (r *repairs) take(now time.Time) (next time.Time) {
	if now.Before(r.next) {
		return r.next
	}
	if r.limiter.AllowN(now, 1) {
		return time.Time{}
	}
	reservation := r.limiter.ReserveN(now, 1)
	r.next = now.Add(reservation.DelayFrom(now))
	reservation.CancelAt(now)
	return r.next
}

// setContested stores that the repairs of a child are limited.
func (m *Memory) setContested(child types.UID, contested *ContestedError) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contested.set(child, contested)
}

// stillContested returns the error of a child whose repairs were limited, until contestedPeriod
// is over. Otherwise the status of its owner would change with each repair.
func (m *Memory) stillContested(child types.UID) error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	contested := m.contested[child]
	if contested == nil {
		return nil
	}
	now := m.now()
	end := contested.NextRepair.Add(contestedPeriod)
	if !now.Before(end) {
		delete(m.contested, child)
		return nil
	}
	again := *contested
	again.RetryAfter = end.Sub(now)
	return &again
}
