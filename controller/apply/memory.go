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

// Memory is what a process remembers of the children of a kind, so that it neither reads
// nor writes again what it has read or written. After a restart it is empty, which costs
// one read for a child whose fields admission rewrote, and new bursts of repairs. The
// zero value and nil are ready for use; nil remembers nothing.
type Memory struct {
	// Clock is the real one if it is nil.
	Clock clock.PassiveClock

	mu        sync.Mutex
	rewrites  bounded[types.UID, []rewrite]
	repairs   bounded[repairKey, *repairs]
	contested bounded[types.UID, *ContestedError]
	created   bounded[createdKey, struct{}]
	written   bounded[types.UID, string]
}

// most bounds each of the maps. A map that is full starts anew: what is lost costs a read
// or a few more repairs.
const most = 4096

type bounded[K comparable, V any] map[K]V

func (m *bounded[K, V]) set(key K, value V) {
	if _, there := (*m)[key]; *m == nil || !there && len(*m) >= most {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// Repairs of one field of one child: a burst, and then a few a minute.
const (
	burst      = 5
	interval   = 20 * time.Second
	calmPeriod = time.Minute
)

type repairKey struct {
	child types.UID
	field string
}

type repairs struct {
	limiter *rate.Limiter
	// due is when the next repair is allowed, once one was not.
	due time.Time
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

// setRewrites remembers the effective values of a child, or that there are none.
func (m *Memory) setRewrites(child types.UID, effective []rewrite) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(effective) == 0 {
		delete(m.rewrites, child)
		return
	}
	m.rewrites.set(child, effective)
}

// areKnownRewrites tells whether each of the differences is known as an effective value, and
// returns these.
func (m *Memory) areKnownRewrites(child types.UID, differences []rewrite) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range differences {
		if !slices.ContainsFunc(m.rewrites[child], func(e rewrite) bool { return e.sum == differences[i].sum }) {
			return false
		}
	}
	return true
}

// setWritten remembers the hash of the desired state that was written to a child.
func (m *Memory) setWritten(child types.UID, desired client.Object) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written.set(child, desired.GetAnnotations()[AnnotationHash])
}

// wasWritten tells whether this process wrote that desired state to the child last. If
// the child says otherwise, another field manager changed what it says.
func (m *Memory) wasWritten(child types.UID, desired client.Object) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	hash, known := m.written[child]
	return known && hash == desired.GetAnnotations()[AnnotationHash]
}

// setCreated remembers that a child of that kind was created for the owner.
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

// allowRepair takes one repair of each of the fields, where their limits allow it. If no
// limit does, it returns the first field, and when its next repair is allowed.
func (m *Memory) allowRepair(child types.UID, drifts []drift) (limited *drift, due time.Time) {
	if m == nil {
		return nil, time.Time{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, allowed := m.now(), false
	for i := range drifts {
		wait := m.repairsOf(child, drifts[i].field).take(now)
		if wait.IsZero() {
			allowed = true
		} else if limited == nil || wait.Before(due) {
			limited, due = &drifts[i], wait
		}
	}
	if allowed {
		return nil, time.Time{}
	}
	return limited, due
}

func (m *Memory) repairsOf(child types.UID, field string) *repairs {
	key := repairKey{child, field}
	if known := m.repairs[key]; known != nil {
		return known
	}
	fresh := &repairs{limiter: rate.NewLimiter(rate.Every(interval), burst)}
	m.repairs.set(key, fresh)
	return fresh
}

// take takes one repair, or returns when the next one is allowed.
func (r *repairs) take(now time.Time) (due time.Time) {
	if now.Before(r.due) {
		return r.due
	}
	if r.limiter.AllowN(now, 1) {
		return time.Time{}
	}
	reservation := r.limiter.ReserveN(now, 1)
	r.due = now.Add(reservation.DelayFrom(now))
	reservation.CancelAt(now)
	return r.due
}

// setContested remembers that the repairs of a child are limited.
func (m *Memory) setContested(child types.UID, contested *ContestedError) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contested.set(child, contested)
}

// stillContested returns the error of a child whose repairs were limited not long ago.
// It is reported until the child was left alone for a while: otherwise its status would
// change with each repair.
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
	calm := contested.Due.Add(calmPeriod)
	if !now.Before(calm) {
		delete(m.contested, child)
		return nil
	}
	again := *contested
	again.RetryAfter = calm.Sub(now)
	return &again
}
