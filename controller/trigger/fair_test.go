// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(namespace string, i int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(i)}}
}

// An object of a namespace with few others waits for none of a namespace with many, unless these
// were there first with as few; one of low priority, as after a start, waits for all others.
func TestFewComeBeforeMany(t *testing.T) {
	t.Parallel()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second)
	q := newFairQueue("few-before-many", limiter).(*fairQueue)
	defer q.ShutDown()
	low := handler.LowPriority
	for i := range 50 {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &low}, request("started", i))
	}
	for i := range 500 {
		q.Add(request("many", i))
	}
	q.Add(request("few", 0))
	place := map[string]int{}
	for i := range 551 {
		item, priority, _ := q.GetWithPriority()
		if _, seen := place[item.Namespace]; !seen {
			place[item.Namespace] = i
		}
		if want := map[bool]int{true: low}[item.Namespace == "started"]; priority != want {
			t.Fatalf("%v has the priority %d, want %d", item, priority, want)
		}
		q.Done(item)
	}
	if place["many"] != 0 || place["few"] > 1 || place["started"] != 501 {
		t.Errorf("the places are %v", place)
	}
	if len(q.active) != 0 {
		t.Errorf("held are %v", q.active)
	}
}

// Nothing that is added is lost, and nothing is held of what is done, in 200 random orders.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		q := newFairQueue(fmt.Sprint("nothing-is-lost-", seed), workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Microsecond, time.Millisecond)).(*fairQueue)
		due, running := map[reconcile.Request]bool{}, []reconcile.Request{}
		done := func() {
			i := random.IntN(len(running))
			q.Done(running[i])
			running = append(running[:i], running[i+1:]...)
		}
		for range 100 {
			isRunning := func(item reconcile.Request) bool { return slices.Contains(running, item) }
			switch item := request(fmt.Sprint(random.IntN(3)), random.IntN(5)); {
			case random.IntN(3) > 0:
				due[item] = true
				q.AddWithOpts(priorityqueue.AddOpts{RateLimited: random.IntN(4) == 0}, item)
			case random.IntN(2) > 0 && slices.ContainsFunc(slices.Collect(maps.Keys(due)), func(item reconcile.Request) bool { return !isRunning(item) }):
				item, _, _ = q.GetWithPriority()
				if isRunning(item) || !due[item] {
					t.Fatalf("seed %d: %v is running, or not due", seed, item)
				}
				delete(due, item)
				running = append(running, item)
			case len(running) > 0:
				done()
			}
		}
		for len(running) > 0 {
			done()
		}
		for len(due) > 0 {
			item, _, _ := q.GetWithPriority()
			delete(due, item)
			q.Done(item)
		}
		q.ShutDown()
		if len(q.active) != 0 {
			t.Errorf("seed %d: held are %v", seed, q.active)
		}
	}
}
