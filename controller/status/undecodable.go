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
	"github.com/modelbox-operator/modelbox-operator/controller/decode"
)

// undecodable records, in the status of an object that could not be decoded whole,
// that nothing is done for it and why. Its kind is not called, because what could not
// be decoded is empty in the object: children would be made from that, or removed.
func (r *recorded[T]) undecodable(ctx context.Context, obj T, failure *decode.Failure) error {
	reason := readyReason(obj)
	said, says, err := withFailure(obj, failure)
	if err != nil {
		return err
	}
	if failure.Status {
		// All in it can be observed again, and until it is replaced no client can read the
		// object. Only the very version that could not be decoded is replaced.
		return r.patchUndecodable(ctx, obj, []byte("{}"), says, true)
	}
	if bytes.Equal(said, says) {
		return nil
	}
	if reason != ReasonInvalidSpec {
		r.recorder.Eventf(obj, nil, corev1.EventTypeWarning, ReasonInvalidSpec, "Reconcile", "%s", note(failure.Message))
	}
	return r.patchUndecodable(ctx, obj, said, says, false)
}

// patchUndecodable patches status without decoding the object in the answer.
func (r *recorded[T]) patchUndecodable(ctx context.Context, obj T, said, says []byte, locked bool) error {
	body, err := operations(obj, said, says, locked)
	if err != nil {
		return err
	}
	gvk, err := r.client.GroupVersionKindFor(obj)
	if err != nil {
		return fmt.Errorf("recording status: %w", err)
	}
	named := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), ResourceVersion: obj.GetResourceVersion(),
	}}
	named.SetGroupVersionKind(gvk)
	err = explained(r.client.Status().Patch(ctx, named, client.RawPatch(types.JSONPatchType, body), client.DisableReadYourWritesConsistency))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("recording in status that the object cannot be decoded: %w", err)
	}
	return nil
}

// withFailure returns an object's status as it is and as it is to be, as JSON. Of what
// was observed, all but the conditions stays as it was last seen.
func withFailure(obj Object, failure *decode.Failure) (said, says []byte, err error) {
	if said, err = json.Marshal(obj.GetStatus()); err != nil {
		return nil, nil, fmt.Errorf("encoding status: %w", err)
	}
	conditions := slices.Clone(obj.GetConditions())
	message := "the stored object cannot be decoded, so nothing is done for it: " + failure.Message
	Stuck(ReasonInvalidSpec, message).Set(&conditions, obj.GetGeneration(), metav1.Now())
	status := map[string]any{}
	if err = json.Unmarshal(said, &status); err != nil {
		return nil, nil, fmt.Errorf("reading status: %w", err)
	}
	if said, err = json.Marshal(status); err != nil { // With its members in the order that says has.
		return nil, nil, fmt.Errorf("encoding status: %w", err)
	}
	maps.Copy(status, map[string]any{"observedGeneration": obj.GetGeneration(), "conditions": conditions})
	if _, schedules := obj.(*mtsrev1.Eru); schedules {
		status["phase"] = mtsrev1.EruFailed
		delete(status, "nextScheduleTime")
	}
	says, err = json.Marshal(status)
	return said, says, err
}
