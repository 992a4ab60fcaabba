// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// update writes the desired state of a child by a server-side apply with force. live is the
// child as it was read from the API server, nil if only the cache was read.
//
// An apply keeps the fields of other managers, and with them the object may be invalid: a
// second source of a volume, a second port of one name. Nor can it revert every modification:
// where the value of a variable is empty in the desired state, there is nothing to apply. Then
// the desired fields are written by a merge patch (overlay).
func (w Writer) update(ctx context.Context, child *Child, live client.Object, report *report) error {
	changed := !hashMatches(child.Desired, child.Live)
	live, err := w.upgradeManagedFields(ctx, child.Live, live)
	if err != nil {
		return err
	}
	applied, err := w.serverSideApply(ctx, child.Desired, live)
	switch {
	case apierrors.IsInvalid(err):
		err = w.overlay(ctx, child, nil, changed, err)
	case err == nil:
		child.Live = applied
		err = w.overlayDrift(ctx, child)
	}
	if err != nil {
		return err
	}
	w.recordRewrites(child, report)
	return nil
}

// overlayDrift overlays a child if the response to an apply still has values of other
// managers. The owners of these values are unknown without managedFields, so the child is read.
func (w Writer) overlayDrift(ctx context.Context, child *Child) error {
	if same(child.Desired, child.Live) {
		return nil
	}
	live, err := w.readLive(ctx, child.Live)
	if err != nil {
		return err
	}
	if drifts, _ := classify(child.Desired, live); len(drifts) == 0 {
		return nil
	}
	return w.overlay(ctx, child, live, false, nil)
}

// readLive reads a child from the API server. It returns a conflict, which is retried, if the
// child was replaced by another object.
func (w Writer) readLive(ctx context.Context, child client.Object) (client.Object, error) {
	live := reflect.New(reflect.TypeOf(child).Elem()).Interface().(client.Object)
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(child), live); err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", kindOf(child), child.GetName(), err)
	}
	if live.GetUID() != child.GetUID() {
		return nil, apierrors.NewConflict(resourceOf(live), live.GetName(), errors.New("it was replaced by another object of that name"))
	}
	return live, nil
}

// errBehind is the reason of a conflict with the informer cache, which is retried.
var errBehind = errors.New("the informer cache does not have its last change yet")

// upgradeManagedFields changes the Update entry of a plain create, or of an overlay, into an
// Apply entry, and returns the child after that. If live is nil it reads the child, because
// the cache has no field sets.
func (w Writer) upgradeManagedFields(ctx context.Context, cached, live client.Object) (client.Object, error) {
	if live == nil {
		live = cached
	}
	if !hasUpdateEntry(live) {
		return live, nil
	}
	if live == cached {
		var err error
		if live, err = w.readLive(ctx, cached); err != nil {
			return nil, err
		}
		if !sameAnnotation(AnnotationHash, cached, live) || !sameAnnotation(AnnotationGeneration, cached, live) {
			return nil, apierrors.NewConflict(resourceOf(live), live.GetName(), errBehind)
		}
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(FieldManager), FieldManager)
	if err != nil || patch == nil {
		return live, err
	}
	return live, w.Client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch))
}

func sameAnnotation(key string, a, b client.Object) bool {
	return a.GetAnnotations()[key] == b.GetAnnotations()[key]
}

// serverSideApply applies desired to the version of the child that was read, and returns the
// object in the API server's response. If the child has changed since, or was replaced, it
// returns a conflict.
func (w Writer) serverSideApply(ctx context.Context, desired, live client.Object) (client.Object, error) {
	versioned := desired.DeepCopyObject().(client.Object)
	versioned.SetUID(live.GetUID())
	versioned.SetResourceVersion(live.GetResourceVersion())
	configuration := &applyConfiguration{desired: versioned}
	if err := w.Client.Apply(ctx, configuration, client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return nil, err
	}
	return configuration.response, nil
}

// overlay writes the desired fields by a merge patch with the resourceVersion of the child
// from which it was computed. live may be nil. It returns refusal if there is nothing to
// patch. If the desired state has changed, the child is applied once more afterwards, because
// only an apply removes fields that are no longer desired.
func (w Writer) overlay(ctx context.Context, child *Child, live client.Object, changed bool, refusal error) error {
	var err error
	if live == nil {
		if live, err = w.readLive(ctx, child.Live); err != nil {
			return err
		}
	}
	child.Live = live
	patch, err := overlayPatch(child.Desired, live)
	if err != nil {
		return err
	}
	if patch == nil {
		return refusal
	}
	if err := w.Client.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager)); err != nil {
		return err
	}
	if !changed {
		return nil
	}
	if live, err = w.upgradeManagedFields(ctx, live, live.DeepCopyObject().(client.Object)); err != nil {
		return err
	}
	applied, err := w.serverSideApply(ctx, child.Desired, live)
	if err != nil {
		return err
	}
	child.Live = applied
	return nil
}

// overlayPatch returns the merge patch that sets every desired field, nil if all of them have
// their desired values.
func overlayPatch(desired, live client.Object) ([]byte, error) {
	overlaid := live.DeepCopyObject().(client.Object)
	overlay(desired, overlaid)
	before, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(overlaid)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil || string(patch) == "{}" {
		return nil, err
	}
	version := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q}}`, live.GetResourceVersion())
	return jsonpatch.MergePatch(patch, version)
}
