// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// start returns the queue of a controller.
func start(t *testing.T) *fairQueue {
	t.Helper()
	q := newQueue("", rateLimiter()).(*fairQueue)
	t.Cleanup(q.ShutDown)
	return q
}

// serve takes n requests, and returns their names.
func serve(q *fairQueue, n int) []string {
	var names []string
	for range n {
		next, _ := q.Get()
		q.Done(next)
		names = append(names, next.String())
	}
	return names
}

// 8 workers are busy with a namespace in which 5,000 objects change again as soon as they
// are reconciled. A single object of another namespace is the next that a worker takes, or
// the one after it.
func TestANoisyNamespaceDoesNotDelayAnother(t *testing.T) {
	t.Parallel()
	const workers, objects = 8, 5000
	q := start(t)
	for i := range objects {
		q.Add(request("noisy", fmt.Sprint(i)))
	}
	var busy []reconcile.Request
	for range workers {
		next, _ := q.Get()
		busy = append(busy, next)
	}
	for round := range 100 {
		single := request("quiet", fmt.Sprint(round))
		q.Add(single)
		served := 0
		for found := false; !found; {
			served++
			q.Add(busy[0])
			q.Done(busy[0])
			next, _ := q.Get()
			busy = append(busy[1:], next)
			found = next == single
		}
		if served > 2 {
			t.Fatalf("the object was the %dth that a worker took, want the second at most", served)
		}
		q.Done(single)
		busy = slices.DeleteFunc(busy, func(r reconcile.Request) bool { return r == single })
		next, _ := q.Get()
		busy = append(busy, next)
	}
}

// Whatever is pushed and popped: a request waits for at most as many requests of each other
// namespace as there are requests of its own before it, and one more; within a namespace the
// order is that of the pushes; nothing is lost or repeated.
func TestTurns(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		random, order, queued, waits := rand.New(rand.NewPCG(seed, 6)), newTurns(), map[string][]reconcile.Request{}, map[reconcile.Request]int{}
		for i := range 500 {
			if random.IntN(5) < 3 || order.Len() == 0 {
				namespace := fmt.Sprint(min(random.IntN(8), 4)) // The last one gets half of all.
				r := request(namespace, fmt.Sprint(i))
				waits[r] = (len(queued[namespace]) + 1) * 5
				queued[namespace] = append(queued[namespace], r)
				order.Push(r)
				continue
			}
			r := order.Pop()
			if own := queued[r.Namespace]; len(own) == 0 || own[0] != r {
				t.Fatalf("seed %d: %s is popped, queued are %v", seed, r, own)
			}
			queued[r.Namespace] = queued[r.Namespace][1:]
			delete(waits, r)
			for other := range waits {
				if waits[other]--; waits[other] < 0 {
					t.Fatalf("seed %d: %s waits too long", seed, other)
				}
			}
		}
		if order.Len() != len(waits) {
			t.Fatalf("seed %d: %d requests are queued, want %d", seed, order.Len(), len(waits))
		}
	}
}

// The objects of the initial list follow those of their namespace that change, but not those
// of other namespaces.
func TestUnhurriedRequests(t *testing.T) {
	t.Parallel()
	q := start(t)
	low := priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}
	q.AddWithOpts(low, request("a", "1"), request("a", "2"), request("a", "3"), request("b", "1"), request("b", "2"))
	q.Add(request("b", "4"))
	q.Add(request("a", "4"))
	q.Add(request("a", "3")) // It has changed since.
	want := []string{"a/4", "b/4", "a/3", "b/1", "a/1", "b/2", "a/2"}
	if diff := cmp.Diff(want, serve(q, len(want))); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if q.Len() != 0 || len(q.turns.of) != 0 || len(q.turns.marked) != 0 || len(q.turns.unhurried) != 0 {
		t.Errorf("something stays: %+v", q.turns)
	}
	q.AddWithOpts(low, request("a", "3"))
	q.Add(request("a", "5"))
	if diff := cmp.Diff([]string{"a/5", "a/3"}, serve(q, 2)); diff != "" {
		t.Errorf("order of a second list (-want +got):\n%s", diff)
	}
}

// controller-runtime's handlers tell events of the initial list by the priority.
func TestTheInitialListIsUnhurried(t *testing.T) {
	t.Parallel()
	q := start(t)
	create := func(name string, initial bool) {
		obj := &corev1.Service{}
		obj.Name = name
		EnqueueSameName().Create(t.Context(), event.TypedCreateEvent[client.Object]{Object: obj, IsInInitialList: initial}, q)
	}
	create("listed", true)
	create("new", false)
	if diff := cmp.Diff([]string{"/new", "/listed"}, serve(q, 2)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestARequestComesAfterItsDelay(t *testing.T) {
	t.Parallel()
	q := start(t)
	q.AddAfter(request("a", "later"), time.Hour)
	q.AddAfter(request("a", "soon"), time.Millisecond)
	q.AddRateLimited(request("b", "failed"))
	got := serve(q, 2)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a/soon", "b/failed"}, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	if q.NumRequeues(request("b", "failed")) != 1 {
		t.Error("the failure is not counted")
	}
}

// The lease is released when all workers have ended.
func TestAQueueThatShutsDownReturnsNoMoreRequests(t *testing.T) {
	t.Parallel()
	q := newQueue("", rateLimiter()).(priorityqueue.PriorityQueue[reconcile.Request])
	q.Add(request("a", "1"))
	q.Add(request("a", "2"))
	q.ShutDown()
	if _, _, shutdown := q.GetWithPriority(); !shutdown {
		t.Error("a request is returned")
	}
}

func TestOptionsUseTheQueue(t *testing.T) {
	t.Parallel()
	options := Options()
	q := options.NewQueue("", options.RateLimiter)
	defer q.ShutDown()
	if _, ok := q.(*fairQueue); !ok {
		t.Errorf("the queue is %T", q)
	}
}
