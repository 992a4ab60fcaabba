// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// lateAfter is how long after its time an object that does not ask keeps its place, in which it
	// holds up all others.
	lateAfter = time.Minute
	// exactWithin is the wait from which on an object asks only once more. Before, it asks at half
	// of its wait, because those ahead of it may leave.
	exactWithin = time.Minute
)

// RolloutQueue bounds how many rollouts of changed configuration begin in a minute, of all kinds
// together, and gives the namespaces their turns: each has one before one of them has the next. The
// queue is in memory alone: objects that wait join that of another process with their next
// reconcile. It is safe for concurrent use.
type RolloutQueue struct {
	// PerMinute is the number of rollouts that begin in a minute, at equal distances; 0 or less is
	// no bound.
	PerMinute int
	Clock     clock.PassiveClock

	mu sync.Mutex
	// next is when the next rollout may begin.
	next time.Time
	// queue has the places in the order of their turns: in each round, each namespace has one.
	// round is that of the last turn, and served are the namespaces that have had theirs in it.
	queue  []place
	round  int
	served map[string]bool
}

// Subject is an object that has something to roll out.
type Subject struct {
	Kind string
	types.NamespacedName
}

// place is one in the queue. Its subject asks again when it is due.
type place struct {
	Subject
	round int
	due   time.Time
}

// Admit returns 0 if the rollout of a subject may begin now, which is its turn, and otherwise its
// position in the queue, from 1 on, and after which time it is to ask again.
func (t *RolloutQueue) Admit(of Subject) (position int, again time.Duration) {
	if t == nil || t.PerMinute <= 0 {
		return 0, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now, distance := t.Clock.Now(), time.Minute/time.Duration(t.PerMinute)
	if t.next.After(now.Add(distance)) { // The clock was set back.
		t.next = now.Add(distance)
	}
	// The reconciles of those that did not ask when they were due fail, or they do not wait any
	// more.
	t.removeIf(func(p place) bool { return p.Subject != of && now.After(p.due.Add(lateAfter)) })
	at := t.join(of)
	if at == 0 && !now.Before(t.next) {
		t.next = now.Add(distance)
		t.serve()
		return 0, 0
	}
	again = max(t.next.Sub(now), 0) + time.Duration(at)*distance
	if again > exactWithin {
		again /= 2
	}
	t.queue[at].due = now.Add(again)
	return at + 1, again
}

// Remove gives up the place of a subject, if it has one.
func (t *RolloutQueue) Remove(of Subject) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removeIf(func(p place) bool { return p.Subject == of })
}

func (t *RolloutQueue) removeIf(gone func(place) bool) { t.queue = slices.DeleteFunc(t.queue, gone) }

// join returns the index of a subject in the queue, which it joins at the end of the first round in
// which its namespace has no turn yet.
func (t *RolloutQueue) join(of Subject) int {
	if i := slices.IndexFunc(t.queue, func(p place) bool { return p.Subject == of }); i >= 0 {
		return i
	}
	round := t.round
	if t.served[of.Namespace] {
		round++
	}
	for _, p := range t.queue {
		if p.Namespace == of.Namespace {
			round = max(round, p.round+1)
		}
	}
	at := slices.IndexFunc(t.queue, func(p place) bool { return p.round > round })
	if at < 0 {
		at = len(t.queue)
	}
	t.queue = slices.Insert(t.queue, at, place{Subject: of, round: round})
	return at
}

// serve removes the first place, whose turn it is.
func (t *RolloutQueue) serve() {
	first := t.queue[0]
	t.queue = t.queue[1:]
	if t.served == nil || first.round > t.round {
		t.round, t.served = first.round, map[string]bool{}
	}
	t.served[first.Namespace] = true
}
