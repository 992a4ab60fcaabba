// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Older reports whether a was created before b: by creationTimestamp, and of two of the same
// second by uid. An object that is not stored yet is the youngest.
func Older(a, b metav1.Object) bool { return ageOf(a).before(ageOf(b)) }

// age orders the objects of a kind.
type age struct {
	created metav1.Time
	uid     types.UID
}

func ageOf(obj metav1.Object) age { return age{obj.GetCreationTimestamp(), obj.GetUID()} }

func (a age) before(b age) bool {
	if a.created.IsZero() || b.created.IsZero() {
		return !a.created.IsZero()
	}
	return cmp.Or(a.created.Compare(b.created.Time), cmp.Compare(a.uid, b.uid)) < 0
}

// Oldest returns the oldest object in the cache that acts on a Deployment; found is false if
// there is none. A call costs one read, however many objects act on the Deployment, unless
// the oldest one was deleted or acts on another Deployment since the last call: then all of
// them are listed once.
func (t *Target[T]) Oldest(ctx context.Context, namespace, deployment string) (obj T, found bool, err error) {
	key := types.NamespacedName{Namespace: namespace, Name: deployment}
	if obj, found, err = t.remembered(ctx, key); found || err != nil {
		return obj, found, err
	}
	if t.bounds != nil {
		t.bounds.scanning.Lock()
		defer t.bounds.scanning.Unlock()
		// Another worker may have listed them in the meantime.
		if obj, found, err = t.remembered(ctx, key); found || err != nil {
			return obj, found, err
		}
	}
	return t.scan(ctx, key)
}

// remembered returns the object that bounds the age of all that act on a Deployment, if it
// is itself in the cache and acts on the Deployment. It is the oldest then.
func (t *Target[T]) remembered(ctx context.Context, key types.NamespacedName) (T, bool, error) {
	var none T
	bound, ok := t.bounds.get(key)
	if !ok {
		return none, false, nil
	}
	obj := newObject[T]()
	name := types.NamespacedName{Namespace: key.Namespace, Name: bound.name}
	if err := t.Client.Get(ctx, name, obj, client.DisableReadYourWritesConsistency); err != nil {
		return none, false, client.IgnoreNotFound(err)
	}
	return obj, obj.GetUID() == bound.uid && t.nameOf(obj) == key.Name, nil
}

// scan lists the objects that act on a Deployment, returns the oldest, and remembers it.
func (t *Target[T]) scan(ctx context.Context, key types.NamespacedName) (first T, found bool, err error) {
	t.bounds.begin(key)
	list, err := t.list(ctx, key.Namespace, key.Name)
	if err != nil {
		t.bounds.forget(key)
		return first, false, fmt.Errorf("listing the objects that act on Deployment %q: %w", key.Name, err)
	}
	_ = meta.EachListItem(list, func(item runtime.Object) error { // It fails only for what is no list.
		obj, ok := item.(T)
		if ok && t.nameOf(obj) == key.Name && (!found || Older(obj, first)) {
			first, found = obj, true
		}
		return nil
	})
	if !found {
		t.bounds.forget(key)
		return first, false, nil
	}
	t.bounds.end(key, first)
	return first, true, nil
}

// bounds has, for each Deployment that Oldest was called for, a lower bound of the age of
// the objects that act on it: none of those in the cache is older. The bound is the age of
// an object that is in the cache or was in it. If it still is, it is the oldest one.
//
// The function of the field index offers each object that enters the cache. The store calls
// it before a reader can see the object, and while no other reads the store, so that there
// is no moment at which a reader sees an older object than the bound. An event handler
// would be called later, and a reconcile in between would see a younger object as the
// oldest. An object that leaves the cache leaves the bound as it is, and is not found then.
//
// All of this is derived from the cache, and can be dropped at any time.
type bounds struct {
	// scanning is held by a reader that lists the objects of a Deployment. The index
	// function must never wait for it: it is called with the store locked.
	scanning sync.Mutex

	mu sync.Mutex
	of map[types.NamespacedName]*bound
}

type bound struct {
	age
	name string
	// complete is false until the objects that were in the cache at the beginning of a scan
	// have been offered too.
	complete bool
}

// maxBounds is the number of Deployments whose bounds are kept. A user can create any number
// of objects with changing targets, one after the other.
const maxBounds = 10_000

// deploymentKey returns the key of a Deployment that an object acts on.
func deploymentKey(obj client.Object, deployment string) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: deployment}
}

// offer lowers the bound of a Deployment to the age of an object, if there is a bound.
func (b *bounds) offer(key types.NamespacedName, obj client.Object) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if current := b.of[key]; current != nil {
		current.lower(obj)
	}
}

func (b *bound) lower(obj client.Object) {
	if b.name == "" || ageOf(obj).before(b.age) {
		b.age, b.name = ageOf(obj), obj.GetName()
	}
}

// get returns the bound of a Deployment; ok is false if it is not known.
func (b *bounds) get(key types.NamespacedName) (_ bound, ok bool) {
	if b == nil {
		return bound{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	current := b.of[key]
	if current == nil || !current.complete {
		return bound{}, false
	}
	return *current, true
}

// begin starts a scan: from now on objects that enter the cache are offered.
func (b *bounds) begin(key types.NamespacedName) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil || len(b.of) >= maxBounds {
		b.of = map[types.NamespacedName]*bound{}
	}
	b.of[key] = &bound{}
}

// end offers the oldest object that a scan found.
func (b *bounds) end(key types.NamespacedName, oldest client.Object) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	current := b.of[key]
	current.lower(oldest)
	current.complete = true
}

// forget drops the bound of a Deployment that no object acts on, or of a failed scan.
func (b *bounds) forget(key types.NamespacedName) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.of, key)
}
