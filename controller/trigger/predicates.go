// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
)

// SpecChanged passes the events of objects that are created, are deleted or have a new
// generation. Changes of status and metadata do not pass. A deletion and a creation that
// the watch missed look like one update with another uid, which passes as well, and so
// does an update after which an object can no longer be decoded, or can be decoded again:
// its status reports that.
func SpecChanged() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				(cache.DecodeErrorOf(e.ObjectOld) == nil) != (cache.DecodeErrorOf(e.ObjectNew) == nil)
		},
	})
}

// ChildChanged passes the events that can matter to an owner of the given kind: every
// change of an object that an owner of that kind controls, and of any other object its
// creation, its deletion and a change of its controller reference. The creation of a child
// by this process does not pass: own contains these.
func ChildChanged(owner schema.GroupKind, own *OwnWrites) builder.Predicates {
	return builder.WithPredicates(childChanged(owner, own))
}

func childChanged(owner schema.GroupKind, own *OwnWrites) predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !own.Take(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
				return false // A resync: nothing has changed.
			}
			return controlledBy(owner, e.ObjectOld) || controlledBy(owner, e.ObjectNew) || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
		},
	}
}

func controlledBy(owner schema.GroupKind, obj client.Object) bool {
	controller := metav1.GetControllerOfNoCopy(obj)
	if controller == nil || controller.Kind != owner.Kind {
		return false
	}
	version, err := schema.ParseGroupVersion(controller.APIVersion)
	return err == nil && version.Group == owner.Group
}

// UpdatedByOthers passes the updates that this process did not write itself, resyncs
// excepted, and every creation and deletion.
func UpdatedByOthers(own *OwnWrites) builder.Predicates {
	return builder.WithPredicates(updatedByOthers(own))
}

func updatedByOthers(own *OwnWrites) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() && !own.Take(e.ObjectNew)
	}}
}
