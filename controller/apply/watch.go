// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/controller/decode"
)

// Asked lets through what changes what is asked for: a new object, a gone one,
// a new generation. Status and metadata are not asked for by anybody. A delete
// and a create that a watch missed look like one update, to another uid. That an object
// cannot be decoded any more, or can be again, is for its status.
func Asked() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				(decode.FailureOf(e.ObjectOld) == nil) != (decode.FailureOf(e.ObjectNew) == nil)
		},
	})
}

// SameName asks for a reconcile of the owner that has the child's name. It needs
// no owner reference, so the object that is in the way of a child is seen when
// it comes and when it goes.
func SameName() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}}
	})
}

// Concerns lets through what may matter to an owner of a kind: every change of a
// child of that kind, and of any other object that it comes, goes or changes
// hands. That a child has come which was created here is no news; fresh is the
// Writer's.
func Concerns(kind schema.GroupKind, fresh *Fresh) builder.Predicates {
	return builder.WithPredicates(concerns(kind, fresh))
}

func concerns(kind schema.GroupKind, fresh *Fresh) predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !fresh.Take(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
				return false // A resync: nothing happened.
			}
			return heldBy(kind, e.ObjectOld) || heldBy(kind, e.ObjectNew) || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
		},
	}
}

func heldBy(kind schema.GroupKind, obj client.Object) bool {
	holder := metav1.GetControllerOfNoCopy(obj)
	if holder == nil || holder.Kind != kind.Kind {
		return false
	}
	version, err := schema.ParseGroupVersion(holder.APIVersion)
	return err == nil && version.Group == kind.Group
}
