// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Object is an object of a kind of this project.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
}

// Recorded wraps what a kind does with what is the same for all kinds: an object
// is loaded; one that is gone or being deleted needs nothing, for its children
// are collected; status, which is all that a kind changes in the object it is
// handed, is written once, last, and only if it differs; and an object that is
// not ready and not on its way there, for a new reason, is told of by an event.
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
	before := obj.DeepCopyObject().(T)
	result, err := r.kind.Reconcile(ctx, obj)
	if equality.Semantic.DeepEqual(before, obj) {
		return result, err
	}
	r.announce(before, obj)
	if err = errors.Join(err, r.record(ctx, before, obj)); err != nil {
		return reconcile.Result{}, err
	}
	return result, nil
}

func (r *recorded[T]) record(ctx context.Context, before, obj T) error {
	err := r.client.Status().Patch(ctx, obj, client.MergeFrom(before))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("recording status: %w", err)
	}
	return nil
}

// announce tells of what became wrong. A status that goes on saying the same is
// not worth an event.
func (r *recorded[T]) announce(before, obj T) {
	wrong := wrong(obj)
	if wrong == nil {
		return
	}
	if was := meta.FindStatusCondition(before.GetConditions(), Ready); was != nil && was.Reason == wrong.Reason {
		return
	}
	r.recorder.Eventf(obj, nil, corev1.EventTypeWarning, wrong.Reason, "Reconcile", "%s", note(wrong.Message))
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
