// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
)

// undecodable writes into the status of an object that could not be decoded whole why it is
// not reconciled. The reconciler of its kind is not called, because the part that could not
// be decoded is empty in the object: it would build children from that, or delete them.
func (r *recorder[T]) undecodable(ctx context.Context, obj T, failure *cache.DecodeError) error {
	notReadyObjects.set(r.name, client.ObjectKeyFromObject(obj), ReasonInvalidSpec)
	reason := readyReason(obj)
	before, after, err := withFailure(obj, failure)
	if err != nil {
		return err
	}
	if failure.Status {
		// Everything in it can be observed again, and no client can read the object until it is
		// replaced. Only the version that could not be decoded is replaced.
		return r.patchUndecodable(ctx, obj, []byte("{}"), after, true)
	}
	if bytes.Equal(before, after) {
		return nil
	}
	if reason != ReasonInvalidSpec {
		r.events.Eventf(obj, nil, corev1.EventTypeWarning, ReasonInvalidSpec, "Reconcile", "%s", note(failure.Message))
	}
	return r.patchUndecodable(ctx, obj, before, after, false)
}

// patchUndecodable patches status without decoding the object in the response.
func (r *recorder[T]) patchUndecodable(ctx context.Context, obj T, before, after []byte, locked bool) error {
	body, err := operations(obj, before, after, locked)
	if err != nil {
		return err
	}
	gvk, err := r.client.GroupVersionKindFor(obj)
	if err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	named := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), ResourceVersion: obj.GetResourceVersion(),
	}}
	named.SetGroupVersionKind(gvk)
	err = explained(r.client.Status().Patch(ctx, named, client.RawPatch(types.JSONPatchType, body), client.DisableReadYourWritesConsistency))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing into status that the object cannot be decoded: %w", err)
	}
	return nil
}

// withFailure returns the status of an object before and after the failure is in it, as
// JSON. What was observed earlier stays, the conditions excepted.
func withFailure(obj Object, failure *cache.DecodeError) (before, after []byte, err error) {
	if before, err = json.Marshal(obj.GetStatus()); err != nil {
		return nil, nil, fmt.Errorf("encoding status: %w", err)
	}
	conditions := slices.Clone(obj.GetConditions())
	message := "the stored object cannot be decoded, so it is not reconciled: " + failure.Message
	NewStalled(ReasonInvalidSpec, message).SetConditions(&conditions, obj.GetGeneration(), metav1.Now())
	status := map[string]any{}
	if err = json.Unmarshal(before, &status); err != nil {
		return nil, nil, fmt.Errorf("decoding status: %w", err)
	}
	if before, err = json.Marshal(status); err != nil { // With its members in the order of after.
		return nil, nil, fmt.Errorf("encoding status: %w", err)
	}
	maps.Copy(status, map[string]any{"observedGeneration": obj.GetGeneration(), "conditions": conditions})
	if _, isEru := obj.(*mtsrev1.Eru); isEru {
		status["phase"] = mtsrev1.EruFailed
		delete(status, "nextScheduleTime")
	}
	after, err = json.Marshal(status)
	return before, after, err
}
