// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Object is an object of a kind of this project.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
	GetStatus() any
}

// WriteAheadReconciler reconciles objects that write to an object which is not their child,
// and which therefore has no annotation that names the generation it was written for.
type WriteAheadReconciler[T Object] interface {
	// Reconcile is the method of reconcile.ObjectReconciler. It calls writeAhead before it
	// writes to the other object, and returns the error of writeAhead.
	Reconcile(ctx context.Context, obj T, writeAhead WriteAhead) (reconcile.Result, error)
}

// WriteAhead writes the status that the object has now, whether it differs or not, with the
// object's resourceVersion as precondition. An object that has changed since it entered the
// cache (another spec, or the status of another leader) causes a conflict then, so that
// nothing is written to the other object.
type WriteAhead func(context.Context) error

// An Option changes how the status of a kind is recorded.
type Option func(*options)

type options struct {
	locked bool
	onGone []func(types.NamespacedName)
}

// WithOptimisticLock makes the object's resourceVersion a precondition of every write of
// its status. A kind needs it whose status has a list that is replaced as a whole: a
// controller with a stale cache would replace a newer list by an older one.
func WithOptimisticLock() Option { return func(o *options) { o.locked = true } }

// OnGone calls a function for each object that was deleted, or that cannot be decoded. It may
// be given several times.
func OnGone(f func(types.NamespacedName)) Option {
	return func(o *options) { o.onGone = append(o.onGone, f) }
}

// Recorded wraps the reconciler of a kind with what is the same for all kinds: it reads the
// object from the cache and does nothing for one that is deleted or being deleted, because
// the garbage collector deletes its children. After the reconcile it writes the status if
// that differs, and emits a Warning event when Ready turns False for a new reason while
// the object does not progress. Nothing else that the reconciler changes in the object,
// such as its defaults, is written.
func Recorded[T Object](c client.Client, events events.EventRecorder, kind reconcile.ObjectReconciler[T], with ...Option) reconcile.Reconciler {
	return RecordedWithWriteAhead(c, events, withoutWriteAhead[T]{kind}, with...)
}

// RecordedWithWriteAhead is Recorded for a WriteAheadReconciler.
func RecordedWithWriteAhead[T Object](c client.Client, events events.EventRecorder, kind WriteAheadReconciler[T], with ...Option) reconcile.Reconciler {
	r := &recorder[T]{client: c, events: events, kind: kind, name: reflect.TypeFor[T]().Elem().Name()}
	for _, option := range with {
		option(&r.options)
	}
	return r
}

type withoutWriteAhead[T Object] struct{ reconcile.ObjectReconciler[T] }

func (w withoutWriteAhead[T]) Reconcile(ctx context.Context, obj T, _ WriteAhead) (reconcile.Result, error) {
	return w.ObjectReconciler.Reconcile(ctx, obj)
}

type recorder[T Object] struct {
	options
	client client.Client
	events events.EventRecorder
	kind   WriteAheadReconciler[T]
	// name is the kind's name, such as ModelBox.
	name string
}

func (r *recorder[T]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	err := r.client.Get(ctx, req.NamespacedName, obj)
	failure := cache.DecodeErrorOf(obj)
	if failure != nil || err != nil && apierrors.IsNotFound(err) {
		for _, forget := range r.onGone {
			forget(req.NamespacedName)
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		notReadyObjects.forget(r.name, req.NamespacedName)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, err
	case obj.GetDeletionTimestamp() != nil:
		notReadyObjects.forget(r.name, req.NamespacedName)
		return reconcile.Result{}, nil
	case failure != nil:
		return reconcile.Result{}, r.undecodable(ctx, obj, failure)
	}
	return r.reconcile(ctx, obj)
}

// reconcile calls the reconciler of the kind and writes the status that it set.
func (r *recorder[T]) reconcile(ctx context.Context, obj T) (reconcile.Result, error) {
	before, err := json.Marshal(obj.GetStatus())
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("encoding status: %w", err)
	}
	reason := readyReason(obj)
	writeAhead := func(ctx context.Context) (err error) {
		before, err = r.writeAhead(ctx, obj, before)
		return err
	}
	result, err := r.kind.Reconcile(ctx, obj, writeAhead)
	notReadyObjects.observe(r.name, client.ObjectKeyFromObject(obj), obj.GetConditions())
	after, encodingErr := json.Marshal(obj.GetStatus())
	if encodingErr != nil || bytes.Equal(before, after) {
		return result, errors.Join(err, encodingErr)
	}
	r.emitWarning(obj, reason)
	if err = errors.Join(err, r.write(ctx, obj, before, after)); err != nil {
		return reconcile.Result{}, err
	}
	return result, nil
}

// writeAhead writes the status that the object has now to the version of the object that
// was read, and returns it.
func (r *recorder[T]) writeAhead(ctx context.Context, obj T, before []byte) ([]byte, error) {
	after, err := json.Marshal(obj.GetStatus())
	if err != nil {
		return before, fmt.Errorf("encoding status: %w", err)
	}
	// The client decodes the response into the object that it is given, and obj has defaults
	// that are not stored.
	response := obj.DeepCopyObject().(T)
	if err := patch(ctx, r.client, response, before, after, true); err != nil {
		return before, fmt.Errorf("writing status ahead of a change: %w", err)
	}
	obj.SetResourceVersion(response.GetResourceVersion())
	return after, nil
}

// write writes what has changed in status.
func (r *recorder[T]) write(ctx context.Context, obj T, before, after []byte) error {
	err := patch(ctx, r.client, obj, before, after, r.locked)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	return nil
}

// emitWarning emits a Warning event if the object needs a change from outside for another
// reason than before. A status that stays the same is not worth an event.
func (r *recorder[T]) emitWarning(obj T, before string) {
	ready := notReady(obj)
	if ready == nil || ready.Reason == before {
		return
	}
	r.events.Eventf(obj, nil, corev1.EventTypeWarning, ready.Reason, "Reconcile", "%s", note(ready.Message))
}

// readyReason returns the reason of the Ready condition, "" if there is none.
func readyReason(obj Object) string {
	if ready := meta.FindStatusCondition(obj.GetConditions(), ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// notReady returns the Ready condition of an object that is not ready and does not
// progress, unless its own spec.paused is the reason.
func notReady(obj Object) *metav1.Condition {
	conditions := obj.GetConditions()
	ready := meta.FindStatusCondition(conditions, ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.Reason == ReasonPaused ||
		meta.IsStatusConditionTrue(conditions, ConditionReconciling) {
		return nil
	}
	return ready
}

// note shortens a message to the 1 kB that an event holds.
func note(message string) string { return rules.Cut(message, 1000) }
