// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// again is after how long a write that Writer.Pace does not admit is tried again, at least.
const again = 10 * time.Second

var errPaused = status.Readiness{Reason: status.ReasonPaused, Message: "spec.paused is true: changes are not written"}

// write writes one child, unless it is settled.
func (w Writer) write(ctx context.Context, owner *Owner, child *Child) (later time.Duration, err error) {
	kind := kinds.KindOf(child.Live)
	recorded := owner.recorded(kind)
	switch {
	case child.Err != nil:
		return 0, child.Err
	case child.Desired == nil:
		return 0, w.remove(ctx, owner, child, kind)
	}
	desired, err := hashOf(child.Desired)
	if err == nil && recorded.Desired != "" {
		err = w.findLive(ctx, owner, child)
	}
	switch {
	case err != nil:
		return 0, err
	case child.isSettled(recorded, desired):
		child.settled = true
		return 0, nil
	case owner.Paused:
		return 0, errPaused
	case child.found && owner.lost(recorded) && w.Pace != nil && !w.Pace.TryAccept():
		return wait.Jitter(again, 1), nil
	}
	return 0, w.settle(ctx, owner, child, recorded, desired)
}

// settle writes a child whose desired state has a hash, and records that in the owner.
func (w Writer) settle(ctx context.Context, owner *Owner, child *Child, recorded modelv1.ChildStatus, desired string) error {
	kind, as := kinds.KindOf(child.Live), *owner
	if recorded.Desired != desired { // Nothing that another client has undone.
		if recorded.Desired != "" {
			as.Limit = owner.Limit.Uncounted()
		}
		recorded = modelv1.ChildStatus{}
	}
	if err := w.createOrUpdate(ctx, &as, child, recorded); err != nil {
		return err
	}
	child.settled = true
	owner.record(modelv1.ChildStatus{Kind: kind, Desired: desired, Stored: cache.Stored(child.Live), Rewritten: rewritten(child.Desired, child.Live)})
	return nil
}

// findLive reads a child that was written before and that the cache does not have: that of a kind
// without consistent reads may not have it yet.
func (w Writer) findLive(ctx context.Context, owner *Owner, child *Child) error {
	if child.found || child.Access == nil {
		return nil
	}
	live := kinds.NewOf(child.Live)
	if err := get(ctx, w.Live, owner, live); err != nil {
		return client.IgnoreNotFound(err)
	}
	child.Live, child.found = live, true
	return checkOwner(live, child.Desired)
}

// HasTemplate reports whether a child has its desired pod template in the API server, although
// status does not say so: the response to the write, or the write of status, was lost. It sends a
// request only if the child is not as status says.
func (w Writer) HasTemplate(ctx context.Context, owner *Owner, child *Child) (bool, error) {
	if !child.found || owner.recorded(kinds.KindOf(child.Live)).Stored == cache.Stored(child.Live) {
		return false, nil
	}
	live := kinds.NewOf(child.Live)
	if err := get(ctx, w.of(child).Live, owner, live); err != nil {
		return false, err
	}
	want, have := kinds.NewOf(child.Live), kinds.NewOf(child.Live)
	*kinds.PodTemplate(want), *kinds.PodTemplate(have) = *kinds.PodTemplate(child.Desired), *kinds.PodTemplate(live)
	return len(rewritten(want, have)) == 0, nil
}

// createOrUpdate writes a child. recorded is what status says of it if that is of the same desired
// state: then another client has changed or deleted it.
func (w Writer) createOrUpdate(ctx context.Context, owner *Owner, child *Child, recorded modelv1.ChildStatus) error {
	if err := w.verify(ctx, child); err != nil {
		return err
	}
	if child.found {
		return w.update(ctx, owner, child, recorded)
	}
	created := child.Desired.DeepCopyObject().(client.Object)
	if err := w.Client.Create(ctx, created, client.FieldOwner(FieldManager), client.FieldValidation("Strict"), owner.Limit); err != nil {
		return Refused("creating", child.Desired, err)
	}
	child.Live, child.found = created, true
	return Refused("creating", child.Desired, missingVolumes(child.Desired, created))
}

// update applies a child as it is in the API server, and not only in the cache. It emits an event
// if another client changed what was written last.
func (w Writer) update(ctx context.Context, owner *Owner, child *Child, recorded modelv1.ChildStatus) error {
	live := kinds.NewOf(child.Live)
	if err := get(ctx, w.Live, owner, live); err != nil {
		return err
	}
	if err := checkOwner(live, child.Desired); err != nil {
		return err
	}
	before := cache.Stored(live)
	if recorded.Stored != "" && recorded.Stored == before { // The cache is late.
		child.Live = live
		return nil
	}
	for _, expectation := range child.Expect {
		if err := expectation.Check(live); err != nil {
			return err
		}
	}
	// After the child was read: one that another leader writes from now on causes a conflict.
	if err := w.checkLive(ctx, owner); err != nil {
		return err
	}
	answer, err := w.apply(ctx, owner, child.Desired, live)
	if contested, ok := errors.AsType[*limit.ContestedError](err); ok {
		owner.Limit.SetManager(contested, first(differing(child.Desired, live)), limit.Manager(live))
	}
	if err != nil {
		return Refused("applying", child.Desired, err)
	}
	child.Live = answer
	if recorded.Stored != "" && cache.Stored(answer) != before {
		w.sendRepaired(owner, live, answer)
	}
	return Refused("applying", child.Desired, missingVolumes(child.Desired, answer))
}

// sendRepaired emits an event if an apply reverted anything. It reverts nothing where another manager
// changed a default that a plain create owned, which is left alone.
func (w Writer) sendRepaired(owner *Owner, live, answer client.Object) {
	if reverted := changed(live, answer); len(reverted) > 0 {
		w.Recorder.Eventf(owner.Object, nil, corev1.EventTypeNormal, "Repaired", "Apply", "%s %q: reverted %s, modified by %s",
			kinds.KindOf(live), live.GetName(), reverted[0], limit.Describe(limit.Manager(live)))
	}
}

// apply writes the desired fields by a forced server-side apply, and returns the response. An apply
// keeps the fields of other managers, and with them the object may be invalid: a second source of a
// volume, a member of a union beside ours. Then the whole spec is replaced, and the apply repeated,
// so that a field that is dropped later leaves the child.
func (w Writer) apply(ctx context.Context, owner *Owner, desired, live client.Object) (client.Object, error) {
	answer, err := w.serverSideApply(ctx, owner, desired, live)
	refused := isInvalid(err) || apierrors.IsInternalError(err) && hasDuplicates(live)
	if !refused {
		return answer, err
	}
	replaced, replaceErr := w.replaceSpec(ctx, owner, desired, live)
	if apierrors.IsInvalid(replaceErr) {
		return nil, err
	}
	if replaceErr != nil {
		return nil, replaceErr
	}
	return w.serverSideApply(ctx, owner, desired, replaced)
}

// serverSideApply applies a child to the version that was read. If it has changed since, or was
// replaced, the API server returns a conflict. It refuses fields that it does not know.
func (w Writer) serverSideApply(ctx context.Context, owner *Owner, desired, live client.Object) (client.Object, error) {
	if err := w.upgradeManagedFields(ctx, owner, live); err != nil {
		return nil, err
	}
	versioned := desired.DeepCopyObject().(client.Object)
	versioned.SetUID(live.GetUID())
	versioned.SetResourceVersion(live.GetResourceVersion())
	configuration, err := kinds.ApplyConfiguration(versioned)
	if err != nil {
		return nil, err
	}
	// A response keeps, in the lists that it is decoded into, what it does not have itself.
	answer := kinds.NewOf(desired)
	answer.SetNamespace(desired.GetNamespace())
	answer.SetName(desired.GetName())
	answer.SetUID(live.GetUID())
	answer.SetGeneration(live.GetGeneration()) // For package limit.
	answer.SetResourceVersion(live.GetResourceVersion())
	return answer, w.Client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, configuration),
		client.FieldOwner(FieldManager), client.ForceOwnership, client.FieldValidation("Strict"), owner.Limit)
}

// upgradeManagedFields changes the Update entry of a plain create, or of a JSON patch, into an
// Apply entry. There is no patch if there is no such entry.
func (w Writer) upgradeManagedFields(ctx context.Context, owner *Owner, live client.Object) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(FieldManager), FieldManager)
	if err != nil || patch == nil {
		return err
	}
	return w.Client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch), owner.Limit)
}

// remove deletes a child that must not exist.
func (w Writer) remove(ctx context.Context, owner *Owner, child *Child, kind string) error {
	switch {
	case !child.found:
	case owner.Paused:
		return errPaused
	default:
		uid, version := child.Live.GetUID(), child.Live.GetResourceVersion()
		preconditions := client.Preconditions{UID: &uid, ResourceVersion: &version}
		err := w.Client.Delete(ctx, child.Live, preconditions, client.PropagationPolicy(metav1.DeletePropagationBackground), owner.Limit)
		if client.IgnoreNotFound(err) != nil {
			return Refused("deleting", child.Live, err)
		}
	}
	owner.forget(kind)
	return nil
}
