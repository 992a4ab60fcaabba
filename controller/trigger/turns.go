// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// turns is the order of a work queue in which namespaces take turns: the next request is the
// first one of the namespace whose last turn was the longest ago. So a request that is the
// only one of its namespace is served after at most one request of each other namespace,
// however many requests these have. It implements workqueue.Queue, whose caller keeps every
// request at most once.
//
// Within a namespace, requests that are marked as unhurried follow all others: see fairQueue.
type turns struct {
	mu     sync.Mutex
	next   fifo[string]
	of     map[string]*turn
	length int
	// marked are the requests that are unhurried when they are pushed, unhurried those that
	// were pushed so and are still queued.
	marked, unhurried sets.Set[reconcile.Request]
}

// turn has the requests of one namespace. A request that is in unhurried, but no longer in
// turns.unhurried, was moved to the others.
type turn struct {
	hurried, unhurried fifo[reconcile.Request]
	length             int
}

func newTurns() *turns {
	return &turns{of: map[string]*turn{}, marked: sets.Set[reconcile.Request]{}, unhurried: sets.Set[reconcile.Request]{}}
}

// mark sets whether a request is unhurried. It takes effect with the next Push or Touch.
func (t *turns) mark(request reconcile.Request, unhurried bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if unhurried {
		t.marked.Insert(request)
	} else {
		t.marked.Delete(request)
	}
}

// Push implements workqueue.Queue.
func (t *turns) Push(request reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.of[request.Namespace]
	if own == nil {
		own = &turn{}
		t.of[request.Namespace] = own
		t.next.push(request.Namespace)
	}
	t.length++
	own.length++
	if t.marked.Has(request) {
		t.unhurried.Insert(request)
		own.unhurried.push(request)
		return
	}
	own.hurried.push(request)
}

// Touch implements workqueue.Queue: it is called for a request that is added again.
func (t *turns) Touch(request reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.unhurried.Has(request) && !t.marked.Has(request) {
		t.unhurried.Delete(request)
		t.of[request.Namespace].hurried.push(request)
	}
}

// Len implements workqueue.Queue.
func (t *turns) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.length
}

// Pop implements workqueue.Queue. It is only called while there are requests.
func (t *turns) Pop() reconcile.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	namespace := t.next.pop()
	own := t.of[namespace]
	request := t.first(own)
	t.marked.Delete(request)
	t.length--
	if own.length--; own.length == 0 {
		delete(t.of, namespace)
	} else {
		t.next.push(namespace)
	}
	return request
}

// first removes the first request of a namespace.
func (t *turns) first(own *turn) reconcile.Request {
	if len(own.hurried) > 0 {
		return own.hurried.pop()
	}
	request := own.unhurried.pop()
	for !t.unhurried.Has(request) {
		request = own.unhurried.pop()
	}
	t.unhurried.Delete(request)
	return request
}

// fifo is a queue: the first element that was pushed is popped first.
type fifo[T any] []T

func (f *fifo[T]) push(element T) { *f = append(*f, element) }

func (f *fifo[T]) pop() T {
	element := (*f)[0]
	(*f)[0] = *new(T) // The array keeps it otherwise.
	*f = (*f)[1:]
	return element
}
