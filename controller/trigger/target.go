// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
)

// Target indexes the objects of a kind by the Deployment in their namespace that they act
// on. The handlers of this package enqueue them when an object that concerns this Deployment
// changes, and Oldest returns the one that takes precedence.
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
func (t *Target[T]) Retargeted() builder.Predicates { return builder.WithPredicates(t.retargeted()) }

func (t *Target[T]) retargeted() predicate.Funcs {
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
