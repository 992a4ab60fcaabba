// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"math/bits"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// fairQueue is the queue of a controller in which an object of a namespace with few objects that
// are ready or being reconciled comes before those of a namespace with many. So the objects of one
// namespace, however many, do not delay a new one of another namespace by more than the reconcile
// that is under way. Of one namespace, the order stays.
//
// The priority of an object is lower by the number of digits, in binary, of the number of objects
// of its namespace that are there already. The metric workqueue_depth has one series for each
// priority: these are few.
type fairQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	mu sync.Mutex
	// active are the namespaces with objects that are ready or being reconciled.
	active map[string]*share
}

// share is what a namespace has of a queue.
type share struct {
	ready map[reconcile.Request]bool
	// running is the number of objects that are being reconciled.
	running int
}

// newFairQueue has the type of controller.Options.NewQueue.
func newFairQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return newFair(priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter }))
}

func newFair(queue priorityqueue.PriorityQueue[reconcile.Request]) *fairQueue {
	return &fairQueue{PriorityQueue: queue, active: map[string]*share{}}
}

// AddWithOpts implements priorityqueue.PriorityQueue. One that is due later is not there yet.
func (q *fairQueue) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	given := 0
	if o.Priority != nil {
		given = *o.Priority
	}
	for _, item := range items {
		priority := given - q.place(item, o.After == 0 && !o.RateLimited)
		o.Priority = &priority
		q.PriorityQueue.AddWithOpts(o, item)
	}
}

// place returns by how much the priority of an object is lower.
func (q *fairQueue) place(item reconcile.Request, ready bool) int {
	before := 0
	q.update(item.Namespace, func(s *share) {
		if before = len(s.ready) + s.running; s.ready[item] {
			before--
		} else if ready {
			s.ready[item] = true
		}
	})
	return bits.Len(uint(before))
}

func (q *fairQueue) update(namespace string, change func(*share)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.active[namespace]
	if s == nil {
		s = &share{ready: map[reconcile.Request]bool{}}
		q.active[namespace] = s
	}
	if change(s); len(s.ready)+s.running == 0 {
		delete(q.active, namespace)
	}
}

// Add implements workqueue.TypedInterface, and with the following ones passes AddWithOpts.
func (q *fairQueue) Add(item reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, item) }

// GetWithPriority implements priorityqueue.PriorityQueue. The priority is the one that was given.
func (q *fairQueue) GetWithPriority() (item reconcile.Request, priority int, shutdown bool) {
	item, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if shutdown {
		return item, priority, shutdown
	}
	q.update(item.Namespace, func(s *share) {
		delete(s.ready, item)
		s.running++
	})
	if priority > handler.LowPriority/2 {
		return item, 0, shutdown
	}
	return item, handler.LowPriority, shutdown
}

// Done implements workqueue.TypedInterface.
func (q *fairQueue) Done(item reconcile.Request) {
	q.PriorityQueue.Done(item)
	q.update(item.Namespace, func(s *share) { s.running-- })
}
