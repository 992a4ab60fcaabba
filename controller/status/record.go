// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/controller/decode"
)

// Object is an object of a kind of this project.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
	GetStatus() any
}

// Recorded wraps what a kind does with what is the same for all kinds: an object
// is loaded; one that is gone or being deleted needs nothing, for its children
// are collected; status is written once, last, and only if it differs; and an object
// that is not ready and not on its way there, for a new reason, is told of by an
// event. What else a kind changes in the object it is handed, such as its defaults, is
// never written.
func Recorded[T Object](c client.Client, recorder events.EventRecorder, kind reconcile.ObjectReconciler[T]) reconcile.Reconciler {
	return reconcile.AsReconciler[T](c, &recorded[T]{client: c, recorder: recorder, kind: kind})
}

type recorded[T Object] struct {
	client   client.Client
	recorder events.EventRecorder
	kind     reconcile.ObjectReconciler[T]
}

func (r *recorded[T]) Reconcile(ctx context.Context, obj T) (reconcile.Result, error) {
	if obj.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	if failure := decode.FailureOf(obj); failure != nil {
		return reconcile.Result{}, r.undecodable(ctx, obj, failure)
	}
	said, err := json.Marshal(obj.GetStatus())
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("encoding status: %w", err)
	}
	reason := readyReason(obj)
	result, err := r.kind.Reconcile(ctx, obj)
	says, failure := json.Marshal(obj.GetStatus())
	if failure != nil || bytes.Equal(said, says) {
		return result, errors.Join(err, failure)
	}
	r.announce(obj, reason)
	if err = errors.Join(err, r.record(ctx, obj, said, says)); err != nil {
		return reconcile.Result{}, err
	}
	return result, nil
}

// record writes what has changed in status. The object itself need not be encoded for
// that.
func (r *recorded[T]) record(ctx context.Context, obj T, said, says []byte) error {
	changes, err := jsonpatch.CreateMergePatch(said, says)
	if err != nil {
		return fmt.Errorf("comparing status: %w", err)
	}
	body := fmt.Appendf(nil, `{"status":%s}`, changes)
	err = r.client.Status().Patch(ctx, obj, client.RawPatch(types.MergePatchType, body))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("recording status: %w", err)
	}
	return nil
}

// announce tells of what became wrong. A status that goes on saying the same is
// not worth an event.
func (r *recorded[T]) announce(obj T, before string) {
	wrong := wrong(obj)
	if wrong == nil || wrong.Reason == before {
		return
	}
	r.recorder.Eventf(obj, nil, corev1.EventTypeWarning, wrong.Reason, "Reconcile", "%s", note(wrong.Message))
}

// readyReason is the reason of the Ready condition, "" if there is none.
func readyReason(obj Object) string {
	if ready := meta.FindStatusCondition(obj.GetConditions(), Ready); ready != nil {
		return ready.Reason
	}
	return ""
}

// wrong is the Ready condition of an object that is neither ready, nor on its
// way, nor kept from it by its owner's own spec.paused.
func wrong(obj Object) *metav1.Condition {
	conditions := obj.GetConditions()
	ready := meta.FindStatusCondition(conditions, Ready)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.Reason == ReasonPaused ||
		meta.IsStatusConditionTrue(conditions, Reconciling) {
		return nil
	}
	return ready
}

// note shortens a message to what an event holds, 1 kB.
func note(message string) string {
	const limit = 1000
	if len(message) <= limit {
		return message
	}
	return message[:limit] + "..."
}
