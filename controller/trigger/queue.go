// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options returns the options of every controller: its back-off, and a queue in which
// namespaces take turns.
func Options() controller.Options {
	return controller.Options{RateLimiter: rateLimiter(), NewQueue: newQueue}
}

// rateLimiter returns the back-off of a controller: after an error an object is reconciled
// again in 50 ms, doubled with each further error up to 2 minutes, for that object alone.
func rateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	const first, longest = 50 * time.Millisecond, 2 * time.Minute
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, longest)
}

// queue is the queue of a controller, as event handlers get it.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// fairQueue is client-go's work queue, with its delays and its metrics, in the order of
// turns. controller-runtime's own queue has one order for all namespaces: the objects of a
// namespace in which thousands change all the time would come before those of another one.
//
// It is a PriorityQueue, because that is how controller-runtime tells that an event is one of
// the initial list, or a resync: its priority is negative. Such a request follows the others
// of its namespace, so that after a start a change is not queued behind all objects. It does
// not follow those of other namespaces, which may never end.
type fairQueue struct {
	queue
	turns *turns
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = &fairQueue{}

// newQueue returns the queue of a controller. It has the type of controller.Options.NewQueue.
func newQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) queue {
	turns := newTurns()
	ready := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: turns})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{Name: name, Queue: ready})
	return &fairQueue{turns: turns, queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, DelayingQueue: delaying})}
}

// Add implements workqueue.TypedInterface.
func (q *fairQueue) Add(request reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, request) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *fairQueue) AddAfter(request reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, request)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *fairQueue) AddRateLimited(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *fairQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, request := range requests {
		q.turns.mark(request, ptr.Deref(o.Priority, 0) < 0)
		switch {
		case o.RateLimited:
			q.queue.AddRateLimited(request)
		case o.After > 0:
			q.queue.AddAfter(request, o.After)
		default:
			q.queue.Add(request)
		}
	}
}

// Get implements workqueue.TypedInterface. A queue that shuts down returns no more requests:
// client-go's would return all that it has, and each would fail because the context has
// ended.
func (q *fairQueue) Get() (reconcile.Request, bool) {
	request, shutdown := q.queue.Get()
	return request, shutdown || q.ShuttingDown()
}

// GetWithPriority implements priorityqueue.PriorityQueue. controller-runtime adds a request
// that failed, or is to be repeated, with the priority that it was returned with: such a
// request is no longer unhurried.
func (q *fairQueue) GetWithPriority() (_ reconcile.Request, priority int, shutdown bool) {
	request, shutdown := q.Get()
	return request, 0, shutdown
}
