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

// ErrDeleting says that an object of the child's name is on its way out, so that
// the child can be created only when it is gone. Its deletion is an event.
var ErrDeleting = errors.New("waiting for an old object to be gone")

// ErrPaused says that a write is due and was not made.
var ErrPaused = errors.New("spec.paused is true: changes are waiting to be written")

// ConflictError says that a child's name is taken by an object that is not the
// owner's. Such an object is never adopted, changed or deleted.
type ConflictError struct {
	// Kind and Name are those of the object that is in the way.
	Kind, Name string
	// Holder is "Kind/name" of its controller, or empty if it has none.
	Holder string
}

func (e *ConflictError) Error() string {
	holder := "no controller"
	if e.Holder != "" {
		holder = e.Holder
	}
	return fmt.Sprintf("%s %q exists and belongs to %s: it is left as it is; delete or rename it, or give this object another name",
		e.Kind, e.Name, holder)
}

// checkOwner tells whether live is controlled by the owner of the desired child.
func checkOwner(live, desired client.Object) error {
	owner := metav1.GetControllerOfNoCopy(desired)
	switch holder := metav1.GetControllerOf(live); {
	case holder != nil && holder.UID == owner.UID && live.GetDeletionTimestamp() == nil:
		return nil
	case holder != nil && holder.UID == owner.UID:
		return fmt.Errorf("%w: %s %q is being deleted", ErrDeleting, kindOf(live), live.GetName())
	case holder == nil:
		return &ConflictError{Kind: kindOf(live), Name: live.GetName()}
	case predecessor(holder, owner):
		return fmt.Errorf("%w: %s %q belonged to a deleted %s of this name and is being collected",
			ErrDeleting, kindOf(live), live.GetName(), holder.Kind)
	default:
		return &ConflictError{Kind: kindOf(live), Name: live.GetName(), Holder: holder.Kind + "/" + holder.Name}
	}
}

// predecessor tells whether the holder is an object that owner replaced: same group,
// kind and name, another uid. The garbage collector removes what it held.
func predecessor(holder, owner *metav1.OwnerReference) bool {
	return holder.Name == owner.Name && holder.Kind == owner.Kind && group(holder) == group(owner)
}

func group(reference *metav1.OwnerReference) string {
	version, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil {
		return reference.APIVersion
	}
	return version.Group
}

// createdByUs tells whether the child still carries the Update entry of our
// create, as the cache trims it.
func createdByUs(live client.Object) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
	})
}

func resourceOf(obj client.Object) schema.GroupResource {
	return schema.GroupResource{Resource: kindOf(obj)}
}
