// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrDeleting reports that an object with the name of the child is being deleted, and that
// the child is created afterwards. The watch event of the deletion starts that reconcile.
var ErrDeleting = errors.New("waiting for the deletion of an old object")

// ErrPaused reports that a child differs from its desired state and was not written.
var ErrPaused = errors.New("spec.paused is true: changes are not written")

// ConflictError reports that an object with the name of a child exists which the owner does
// not control. Such an object is never adopted, changed or deleted.
type ConflictError struct {
	// Kind and Name are those of the existing object.
	Kind, Name string
	// Controller is "Kind/name" of its controller, or empty if it has none.
	Controller string
}

func (e *ConflictError) Error() string {
	controller := "has no controller"
	if e.Controller != "" {
		controller = "is controlled by " + e.Controller
	}
	return fmt.Sprintf("%s %q already exists and %s: it is not changed; delete or rename it, or give this object another name",
		e.Kind, e.Name, controller)
}

// checkOwner returns an error unless the owner of the desired child controls live.
func checkOwner(live, desired client.Object) error {
	owner := metav1.GetControllerOfNoCopy(desired)
	switch controller := metav1.GetControllerOf(live); {
	case controller != nil && controller.UID == owner.UID && live.GetDeletionTimestamp() == nil:
		return nil
	case controller != nil && controller.UID == owner.UID:
		return fmt.Errorf("%w: %s %q is being deleted", ErrDeleting, kindOf(live), live.GetName())
	case controller == nil:
		return &ConflictError{Kind: kindOf(live), Name: live.GetName()}
	case isPredecessor(controller, owner):
		return fmt.Errorf("%w: %s %q is controlled by a deleted %s of this name and waits for garbage collection",
			ErrDeleting, kindOf(live), live.GetName(), controller.Kind)
	default:
		return &ConflictError{Kind: kindOf(live), Name: live.GetName(), Controller: controller.Kind + "/" + controller.Name}
	}
}

// isPredecessor reports whether the controller of a child is an object that was replaced by
// owner: it has the same group, kind and name, and another uid. The garbage collector deletes
// its children.
func isPredecessor(controller, owner *metav1.OwnerReference) bool {
	return controller.Name == owner.Name && controller.Kind == owner.Kind && group(controller) == group(owner)
}

func group(reference *metav1.OwnerReference) string {
	version, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil {
		return reference.APIVersion
	}
	return version.Group
}

// hasUpdateEntry reports whether managedFields still has the Update entry of the plain create,
// which the cache keeps without its field set.
func hasUpdateEntry(live client.Object) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
	})
}

func resourceOf(obj client.Object) schema.GroupResource {
	return schema.GroupResource{Resource: kindOf(obj)}
}
