// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
)

// undecodable writes into the status of an object that cannot be decoded why it is not
// reconciled. The reconciler of its kind is not called, because it would build children from the
// part that could be decoded, or delete them. What was observed earlier stays in status, unless
// it is status that cannot be decoded.
func (r *recorder[T]) undecodable(ctx context.Context, obj T, writer *Writer, failure *cache.UndecodableError) error {
	notReadyObjects.set(r.name, client.ObjectKeyFromObject(obj), ReasonInvalidSpec)
	reason, conditions := readyReason(obj), obj.GetConditions()
	NewStalled(ReasonInvalidSpec, "the stored object cannot be decoded, so it is not reconciled: "+failure.Error()).
		SetConditions(&conditions, obj.GetGeneration(), metav1.Now())
	clamp(reflect.ValueOf(&conditions).Elem())
	// What was written to children is found out anew, in the few kinds that have it.
	members := map[string]any{"observedGeneration": obj.GetGeneration(), "conditions": conditions, "children": nil}
	maps.Copy(members, r.Undecodable)
	after, err := json.Marshal(members)
	if err == nil && !failure.StatusToo {
		after, err = jsonpatch.MergePatch(failure.Status, after)
	}
	if err != nil {
		return fmt.Errorf("encoding status: %w", err)
	}
	if jsonpatch.Equal(failure.Status, after) {
		return nil
	}
	// The response is read as metadata alone, because the object cannot be decoded.
	named := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), ResourceVersion: obj.GetResourceVersion(),
	}}
	named.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	err = writer.write(ctx, named, failure.Status, after, client.DisableReadYourWritesConsistency)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("the stored object cannot be decoded (%w): %w", failure, err)
	}
	if err == nil && reason != ReasonInvalidSpec {
		r.emit(obj, &metav1.Condition{Reason: ReasonInvalidSpec, Message: failure.Error()})
	}
	return nil
}
