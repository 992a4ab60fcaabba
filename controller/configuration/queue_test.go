// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func subjectOf(namespace string, i int) Subject {
	return Subject{"App", types.NamespacedName{Namespace: namespace, Name: fmt.Sprint("web-", i)}}
}

// waiting are objects, and when each was told to ask.
type waiting struct {
	turns *RolloutQueue
	clock *clocktesting.FakePassiveClock
	asks  map[Subject]time.Time
}

func newWaiting(perMinute int) *waiting {
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
	return &waiting{&RolloutQueue{PerMinute: perMinute, Clock: clk}, clk, map[Subject]time.Time{}}
}

// ask lets an object ask, and returns its position.
func (w *waiting) ask(of Subject) (position int) {
	position, again := w.turns.Admit(of)
	if delete(w.asks, of); position > 0 {
		w.asks[of] = w.clock.Now().Add(again)
	}
	return position
}

// next sets the clock to when the next object asks, and returns that object.
func (w *waiting) next() (of Subject) {
	var at time.Time
	for subject, asks := range w.asks {
		if at.IsZero() || asks.Before(at) {
			of, at = subject, asks
		}
	}
	w.clock.SetTime(at)
	return of
}

// A thousand objects of four namespaces, of which one has nearly all, refer to one ConfigMap: never
// more begin than the pace allows, each once, and the namespaces in turn. They join in a random
// order.
func TestAThousandObjectsTakeTurns(t *testing.T) {
	t.Parallel()
	const distance = 6 * time.Second
	w := newWaiting(10)
	start, left := w.clock.Now(), map[string]int{"a": 900, "b": 90, "c": 9, "d": 1}
	for namespace, count := range left {
		for i := range count {
			w.asks[subjectOf(namespace, i)] = start
		}
	}
	last, asked, round := start, 0, map[string]bool{}
	for of := range maps.Clone(w.asks) {
		if w.ask(of) == 0 {
			left[of.Namespace]--
			round[of.Namespace] = true
		}
	}
	for ; len(w.asks) > 0 && asked < 10*1000; asked++ {
		of := w.next()
		if w.ask(of) > 0 {
			continue
		}
		now := w.clock.Now()
		if now.Sub(last) < distance {
			t.Fatalf("%s begins %s after the one before", of, now.Sub(last))
		}
		for namespace, count := range left {
			if round[of.Namespace] && count > 0 && !round[namespace] {
				t.Fatalf("%s has a turn before %s", of.Namespace, namespace)
			}
		}
		if round[of.Namespace] { // All others that still have objects had their turn.
			clear(round)
		}
		round[of.Namespace] = true
		left[of.Namespace]--
		last = now
	}
	if took, want := last.Sub(start), 999*distance; took != want || len(w.asks) > 0 || len(w.turns.queue) > 0 {
		t.Errorf("it took %s, want %s; after %d, %d still ask, and there are %v", took, want, asked, len(w.asks), w.turns.queue)
	}
	for namespace, count := range left {
		if count != 0 {
			t.Errorf("%d objects of %s began no rollout", count, namespace)
		}
	}
}

func TestTakeAndLeave(t *testing.T) {
	t.Parallel()
	one, two, other := subjectOf("a", 1), subjectOf("a", 2), subjectOf("b", 1)
	w := newWaiting(1)
	take := func(of Subject, want int, wantAgain time.Duration) {
		t.Helper()
		if position, again := w.turns.Admit(of); position != want || again != wantAgain {
			t.Errorf("%s: position %d, again after %s, want %d and %s", of, position, again, want, wantAgain)
		}
	}
	take(subjectOf("c", 1), 0, 0)
	take(one, 1, time.Minute)
	take(two, 2, time.Minute) // Half of two minutes.
	take(other, 2, time.Minute)
	take(two, 3, 90*time.Second)
	w.turns.Remove(other)
	w.turns.Remove(other)
	take(two, 2, time.Minute)
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	take(two, 2, time.Minute)
	take(one, 0, 0)
	take(one, 2, time.Minute)

	w.clock.SetTime(w.clock.Now().Add(-time.Hour))
	take(two, 1, time.Minute) // Not an hour later.

	w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
	take(one, 0, 0) // The other one did not ask when it was due, and has no place any more.
}

func TestWithoutABoundNothingWaits(t *testing.T) {
	t.Parallel()
	for _, turns := range []*RolloutQueue{nil, {}, {PerMinute: -1}} {
		for i := range 100 {
			if position, again := turns.Admit(subjectOf("a", i)); position != 0 || again != 0 {
				t.Fatal(position, again)
			}
		}
		turns.Remove(subjectOf("a", 1))
	}
}
