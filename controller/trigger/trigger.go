// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trigger defines what starts a reconcile: the predicates that filter watch events, the
// event handlers that map an object to the objects to reconcile, and the back-off after an error.
package trigger

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options returns the options of every controller: after an error an object is reconciled again
// in 50 ms, doubled with each further error up to 2 minutes, for that object alone.
func Options() controller.Options {
	const first, longest = 50 * time.Millisecond, 2 * time.Minute
	return controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, longest)}
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
func ChildChanged(owner schema.GroupKind) builder.Predicates {
	return builder.WithPredicates(childChanged(owner))
}

func childChanged(owner schema.GroupKind) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
			return false // A resync: nothing has changed.
		}
		return controlledBy(owner, e.ObjectOld) || controlledBy(owner, e.ObjectNew) || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
	}}
}

func controlledBy(owner schema.GroupKind, obj client.Object) bool {
	controller := metav1.GetControllerOfNoCopy(obj)
	if controller == nil || controller.Kind != owner.Kind {
		return false
	}
	version, err := schema.ParseGroupVersion(controller.APIVersion)
	return err == nil && version.Group == owner.Group
}

// EnqueueSameName enqueues the object that has the name of the watched one: children have
// the name of their owner. It does not need an owner reference, so that an object which
// belongs to another owner and prevents the creation of a child is seen when it is created
// and when it is deleted.
func EnqueueSameName() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	})
}
