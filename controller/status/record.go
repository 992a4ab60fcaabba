// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// ClaimingReconciler reconciles objects that act on an object which is not their
// child, and which therefore carries no mark of theirs.
type ClaimingReconciler[T Object] interface {
	// Reconcile is a reconcile.ObjectReconciler's. It calls claim before it writes to
	// the other object, and returns claim's error.
	Reconcile(ctx context.Context, obj T, claim Claim) (reconcile.Result, error)
}

// Claim writes the status as it is in the object now, with the object's
// resourceVersion as precondition, whether it differs or not. So an object that has
// changed since it entered the cache (another spec, another leader's status) acts on
// nothing: Claim's error is a conflict then.
type Claim func(context.Context) error

// Recorded wraps what a kind does with what is the same for all kinds: an object
// is loaded; one that is gone or being deleted needs nothing, for its children
// are collected; status is written once, last, and only if it differs; and an object
// that is not ready and not on its way there, for a new reason, is told of by an
// event. What else a kind changes in the object it is handed, such as its defaults, is
// never written.
func Recorded[T Object](c client.Client, recorder events.EventRecorder, kind reconcile.ObjectReconciler[T]) reconcile.Reconciler {
	return reconcile.AsReconciler[T](c, &recorded[T]{client: c, recorder: recorder, kind: unclaiming[T]{kind}})
}

// RecordedWithClaims is Recorded for a kind that claims.
func RecordedWithClaims[T Object](c client.Client, recorder events.EventRecorder, kind ClaimingReconciler[T]) reconcile.Reconciler {
	return reconcile.AsReconciler[T](c, &recorded[T]{client: c, recorder: recorder, kind: kind})
}

// RecordedWithLock is RecordedWithClaims for a kind whose status replaces a list as a
// whole: every write of its status has the object's resourceVersion as precondition, or
// a stale controller would put an old list in the place of a newer one.
func RecordedWithLock[T Object](c client.Client, recorder events.EventRecorder, kind ClaimingReconciler[T]) reconcile.Reconciler {
	return reconcile.AsReconciler[T](c, &recorded[T]{client: c, recorder: recorder, kind: kind, locked: true})
}

type unclaiming[T Object] struct{ reconcile.ObjectReconciler[T] }

func (u unclaiming[T]) Reconcile(ctx context.Context, obj T, _ Claim) (reconcile.Result, error) {
	return u.ObjectReconciler.Reconcile(ctx, obj)
}

type recorded[T Object] struct {
	client   client.Client
	recorder events.EventRecorder
	kind     ClaimingReconciler[T]
	locked   bool
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
	claim := func(ctx context.Context) (err error) {
		said, err = r.claim(ctx, obj, said)
		return err
	}
	result, err := r.kind.Reconcile(ctx, obj, claim)
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

// claim writes the status as it is now on the version of the object that obj is, and
// returns what has been written.
func (r *recorded[T]) claim(ctx context.Context, obj T, said []byte) ([]byte, error) {
	says, err := json.Marshal(obj.GetStatus())
	if err != nil {
		return said, fmt.Errorf("encoding status: %w", err)
	}
	// The answer replaces what it is decoded into, and obj has defaults that are not stored.
	answer := obj.DeepCopyObject().(T)
	if err := patch(ctx, r.client, answer, said, says, true); err != nil {
		return said, fmt.Errorf("recording in status what is about to be done: %w", err)
	}
	obj.SetResourceVersion(answer.GetResourceVersion())
	return says, nil
}

// record writes what has changed in status. The object itself need not be encoded for
// that.
func (r *recorded[T]) record(ctx context.Context, obj T, said, says []byte) error {
	err := patch(ctx, r.client, obj, said, says, r.locked)
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
func note(message string) string { return cut(message, 1000) }
