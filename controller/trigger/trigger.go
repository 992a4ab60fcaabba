// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trigger defines what starts a reconcile: the predicates that filter watch events, the
// event handlers that map an object to the objects to reconcile, and the back-off after an error.
package trigger

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
)

// Options returns the options of every controller: after an error an object is reconciled again
// in 50 ms, doubled with each further error up to 2 minutes, for that object alone.
func Options() controller.Options {
	const first, longest = 50 * time.Millisecond, 2 * time.Minute
	return controller.Options{
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, longest),
		NewQueue:    newFairQueue,
	}
}

// Longest is how long the controller relies on its timers. They do not follow a clock that is set,
// so this is how late a jump of the clock is noticed.
const Longest = 5 * time.Minute

// Until returns the time from now until an instant, after which to reconcile again: at most
// Longest, and 0 (never) for the zero time.
func Until(at, now time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return min(max(at.Sub(now), time.Millisecond), Longest)
}

// Sooner returns the sooner of two times after which to reconcile again, of which 0 is never.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// syncTimeout is how long Synced waits for an informer. One that takes longer continues, and a
// later call waits for it.
const syncTimeout = 30 * time.Second

// Synced returns the informer of a kind when the cache has the objects of the kind. A handler that
// is added to it gets each later event: source.Kind would add it some time later, and miss a
// deletion.
func Synced(ctx context.Context, c ctrlcache.Cache, obj client.Object) (ctrlcache.Informer, error) {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	return c.GetInformer(ctx, obj)
}

// Changed passes every event but a resync. A change of status alone passes too, also one by this
// process: a status that another client writes is corrected, and a status that could not be
// written, because the cache did not have the last version of the object, is written now.
func Changed() builder.Predicates {
	return builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})
}

// ChildChanged passes the events that can matter to an owner of the given kind: every
// change of an object that an owner of that kind controls, and of any other object its
// creation, its deletion and a change of its controller reference.
func ChildChanged(owner schema.GroupKind) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
			return false // A resync: nothing has changed.
		}
		return controlledBy(owner, e.ObjectOld) || controlledBy(owner, e.ObjectNew) || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
	}}
}

func controlledBy(owner schema.GroupKind, obj client.Object) bool {
	controller := metav1.GetControllerOfNoCopy(obj)
	return controller != nil && schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind() == owner
}

// Target indexes the objects of a kind by the Deployment in their namespace that they act
// on, or by the Service in their namespace that they name. The handlers of this package enqueue
// them when an object that concerns this Deployment changes, and Oldest returns the one that takes
// precedence.
type Target[T client.Object] struct {
	// Client reads the index.
	Client client.Reader
	// List returns a new, empty list of the kind.
	List func() client.ObjectList
	// Name returns the name of the Deployment that an object of the kind acts on, "" if it
	// acts on none.
	Name func(T) string
}

// indexTarget is the name of the index.
const indexTarget = "spec.deploymentName"

// Index adds the index to a manager's cache. An object that cannot be decoded is not in it.
func (t *Target[T]) Index(ctx context.Context, indexer client.FieldIndexer) error {
	obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	return indexer.IndexField(ctx, obj, indexTarget, func(obj client.Object) []string {
		if name := t.nameOf(obj); name != "" {
			return []string{name}
		}
		return nil
	})
}

// nameOf is Name for an object of the cache, "" for one that cannot be decoded.
func (t *Target[T]) nameOf(obj client.Object) string {
	typed, err := cache.Typed[T](obj)
	if err != nil {
		return ""
	}
	return t.Name(typed)
}

// Oldest returns the oldest object in the cache that acts on a Deployment; found is false if
// there is none.
func (t *Target[T]) Oldest(ctx context.Context, namespace, deployment string) (oldest T, found bool, err error) {
	all, err := t.list(ctx, namespace, deployment)
	for _, obj := range all {
		if !found || Older(obj, oldest) {
			oldest, found = obj, true
		}
	}
	return oldest, found, err
}

// Older reports whether a was created before b: by creationTimestamp, and of two of the same
// second by uid. An object that is not stored yet is the youngest.
func Older(a, b metav1.Object) bool {
	created, other := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if created.IsZero() || other.IsZero() {
		return !created.IsZero()
	}
	return cmp.Or(created.Compare(other.Time), cmp.Compare(a.GetUID(), b.GetUID())) < 0
}

// list lists, from the cache, the objects that act on a Deployment. Callers read only what
// the controller does not write, so that the list need not contain its own writes yet.
func (t *Target[T]) list(ctx context.Context, namespace, deployment string) (objects []T, err error) {
	list := t.List()
	err = t.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{indexTarget: deployment}, client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("listing the objects that act on Deployment %q: %w", deployment, err)
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if obj := item.(T); t.Name(obj) == deployment { // A reader without the index lists others too.
			objects = append(objects, obj)
		}
		return nil
	})
	return objects, err
}

// EnqueueNamed enqueues every object that acts on the watched Deployment.
func (t *Target[T]) EnqueueNamed() handler.EventHandler {
	return t.enqueue(client.Object.GetName)
}

// EnqueueRivals enqueues every object that acts on the same Deployment as the watched object,
// which is one of rivals. t and rivals may be the same.
func EnqueueRivals[T, R client.Object](t *Target[T], rivals *Target[R]) handler.EventHandler {
	return t.enqueue(rivals.nameOf)
}

// Retargeted passes objects that are created, are deleted or act on another Deployment than
// before.
func (t *Target[T]) Retargeted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || t.nameOf(e.ObjectOld) != t.nameOf(e.ObjectNew)
	}}
}

// enqueue enqueues every object that acts on the Deployment whose name a function returns.
func (t *Target[T]) enqueue(deployment func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		name := deployment(obj)
		if name == "" {
			return nil
		}
		objects, err := t.list(ctx, obj.GetNamespace(), name)
		if err != nil {
			log.FromContext(ctx).Error(err, "Mapping an event to requests")
		}
		requests := make([]reconcile.Request, len(objects))
		for i, named := range objects {
			requests[i].NamespacedName = client.ObjectKeyFromObject(named)
		}
		return requests
	})
}
