// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// checkOwnerIsCurrent asks the API server for the owner before a child is created or deleted, see
// checkLive. The children of a new owner are created without a read: if they exist, a create fails.
// An owner is not new if it has conditions, some child, or writes that the limiter knows.
func (w Writer) checkOwnerIsCurrent(ctx context.Context, owner *Owner, children []*Child) error {
	asDesired := func(c *Child) bool { return c.found == (c.Desired != nil) }
	if owner.Paused || !slices.ContainsFunc(children, func(c *Child) bool { return !asDesired(c) }) {
		return nil
	}
	reported, ok := owner.Object.(interface{ GetConditions() []metav1.Condition })
	if ok && len(reported.GetConditions()) > 0 || owner.Limit.HasRecentWrites() || slices.ContainsFunc(children, (*Child).Exists) {
		return w.checkLive(ctx, owner)
	}
	return nil
}

// checkLive returns ErrOwnerGone if the owner was deleted, and ErrStale if it has a newer
// generation than the one in the cache, or perhaps a status of children of which that one says
// nothing. A cache that is behind must not revert children, nor create them again after the garbage
// collector has deleted them, nor write again what it has just written: of an object, it may not
// have the own writes yet if it is limited to several namespaces (the consistent client of
// controller-runtime v0.25 takes the last version that any of their informers has).
func (w Writer) checkLive(ctx context.Context, owner *Owner) error {
	live := kinds.NewOf(owner.Object)
	switch err := get(ctx, w.Live, owner, live); {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil || live.GetUID() != owner.GetUID() || live.GetDeletionTimestamp() != nil:
		return ErrOwnerGone
	case live.GetGeneration() > owner.GetGeneration():
		return fmt.Errorf("the children of %s %q are not written: it has generation %d, but %w %d",
			kinds.KindOf(owner.Object), owner.GetName(), live.GetGeneration(), ErrStale, owner.GetGeneration())
	case len(owner.Children) == 0 && live.GetResourceVersion() != owner.GetResourceVersion():
		return fmt.Errorf("the children of %s %q are not written: %w %d without its last status",
			kinds.KindOf(owner.Object), owner.GetName(), ErrStale, owner.GetGeneration())
	}
	return nil
}

// checkOwner returns a status.Readiness unless the owner of the desired child controls live. An
// object of another owner is never adopted, changed or deleted. A child that is being deleted is
// created afterwards; the watch event of the deletion starts that reconcile.
func checkOwner(live, desired client.Object) error {
	const deleting = "waiting for the deletion of an old object: %s %q is "
	owner, held := metav1.GetControllerOfNoCopy(desired), "has no controller"
	switch controller := metav1.GetControllerOfNoCopy(live); {
	case controller == nil:
	case controller.UID == owner.UID && live.GetDeletionTimestamp() == nil:
		return nil
	case controller.UID == owner.UID:
		return status.NewReconciling(status.ReasonWaitingForDeletion, fmt.Sprintf(deleting+"being deleted", kinds.KindOf(live), live.GetName()))
	case controller.Name == owner.Name && groupKind(controller) == groupKind(owner): // The garbage collector deletes its children.
		return status.NewReconciling(status.ReasonWaitingForDeletion, fmt.Sprintf(
			deleting+"controlled by a deleted %s of this name and waits for garbage collection", kinds.KindOf(live), live.GetName(), controller.Kind))
	default:
		held = "is controlled by " + controller.Kind + "/" + controller.Name
	}
	return status.NewStalled(status.ReasonNameConflict, fmt.Sprintf(
		"%s %q already exists and %s: it is not changed; delete or rename it, or give this object another name", kinds.KindOf(live), live.GetName(), held))
}

func groupKind(reference *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
}

// ErrOwnerGone reports that an object which is still in the cache was deleted, or replaced by
// another object of its name. Nothing is written for it, and nothing is retried: the watch event
// of the deletion follows.
var ErrOwnerGone = errors.New("the object has been deleted")

// ErrStale reports that there is a newer generation, or status, of an owner than the one in the
// informer cache. Its children are not written; the reconcile is retried until the cache is up to
// date.
var ErrStale = errors.New("the informer cache still has generation")
