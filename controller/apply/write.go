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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// update writes the desired state of a child by a server-side apply with force. live is
// the child as the API server has it, nil if only the cache was read.
//
// An apply leaves what other managers own beside ours, and that may be what the API
// server refuses: a second source of a volume, a second port of one name. It cannot undo
// every edit either: where desired leaves the value of a variable empty there is nothing to
// apply. Then the child is overlaid.
func (w Writer) update(ctx context.Context, child *Child, live client.Object, report *report) error {
	changed := !hashMatches(child.Desired, child.Live)
	live, err := w.takeOver(ctx, child.Live, live)
	if err != nil {
		return err
	}
	answer, err := w.serverSideApply(ctx, child.Desired, live)
	switch {
	case apierrors.IsInvalid(err):
		err = w.overlay(ctx, child, nil, changed, err)
	case err == nil:
		child.Live = answer
		err = w.overlayDrift(ctx, child)
	}
	if err != nil {
		return err
	}
	w.settle(child, report)
	return nil
}

// overlayDrift overlays a child where the answer to an apply still has values of other
// managers. The answer does not say whose they are, so the child is read.
func (w Writer) overlayDrift(ctx context.Context, child *Child) error {
	if same(child.Desired, child.Live) {
		return nil
	}
	live, err := w.readAgain(ctx, child.Live)
	if err != nil {
		return err
	}
	if drifts, _ := classify(child.Desired, live); len(drifts) == 0 {
		return nil
	}
	return w.overlay(ctx, child, live, false, nil)
}

// readAgain reads a child from the API server. That it was replaced is an error that is
// retried.
func (w Writer) readAgain(ctx context.Context, child client.Object) (client.Object, error) {
	live := reflect.New(reflect.TypeOf(child).Elem()).Interface().(client.Object)
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(child), live); err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", kindOf(child), child.GetName(), err)
	}
	if live.GetUID() != child.GetUID() {
		return nil, apierrors.NewConflict(resourceOf(live), live.GetName(), errors.New("it was replaced by another object of that name"))
	}
	return live, nil
}

// takeOver turns the Update entry that our create, or an overlay, left into an Apply
// entry, and returns the child as it is then. It reads the live object if that is not
// known, because the cache holds no field sets.
func (w Writer) takeOver(ctx context.Context, cached, live client.Object) (client.Object, error) {
	if live == nil {
		live = cached
	}
	if !createdByUs(live) {
		return live, nil
	}
	if live == cached {
		var err error
		if live, err = w.readAgain(ctx, cached); err != nil {
			return nil, err
		}
		if !sameAnnotation(AnnotationHash, cached, live) || !sameAnnotation(AnnotationGeneration, cached, live) {
			return nil, apierrors.NewConflict(resourceOf(live), live.GetName(), errors.New("the cache does not show its last change yet"))
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

// serverSideApply applies desired to the child as it was read: to another one, or to one
// that has changed since, the answer is a conflict.
func (w Writer) serverSideApply(ctx context.Context, desired, live client.Object) (client.Object, error) {
	versioned := desired.DeepCopyObject().(client.Object)
	versioned.SetUID(live.GetUID())
	versioned.SetResourceVersion(live.GetResourceVersion())
	configuration, err := applyConfiguration(versioned)
	if err != nil {
		return nil, err
	}
	if err := w.Client.Apply(ctx, configuration, client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return nil, err
	}
	return w.answer(configuration, desired)
}

// answer is the API server's answer to an apply.
func (w Writer) answer(configuration runtime.ApplyConfiguration, desired client.Object) (client.Object, error) {
	fresh, err := w.Client.Scheme().New(desired.GetObjectKind().GroupVersionKind())
	if err != nil {
		return nil, err
	}
	return fresh.(client.Object), convert(configuration, fresh)
}

// overlay writes the desired fields over the live ones by a patch that carries the
// resourceVersion of the child it was computed from. live may be nil. refusal is returned
// if there is nothing to patch. After a change the child is applied once more, because
// only an apply removes what is no longer desired.
func (w Writer) overlay(ctx context.Context, child *Child, live client.Object, changed bool, refusal error) error {
	var err error
	if live == nil {
		if live, err = w.readAgain(ctx, child.Live); err != nil {
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
	if live, err = w.takeOver(ctx, live, live.DeepCopyObject().(client.Object)); err != nil {
		return err
	}
	answer, err := w.serverSideApply(ctx, child.Desired, live)
	if err != nil {
		return err
	}
	child.Live = answer
	return nil
}

// overlayPatch is the merge patch that gives every desired field its value, nil if all
// of them have it.
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
