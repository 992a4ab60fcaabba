// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status turns the observed state of an object into its conditions, and writes
// its status: once in a reconcile, last, and only when it differs.
package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
)

// Object is an object of a kind of this project.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
	// GetStatus returns a pointer to status.
	GetStatus() any
}

// Reconciler reconciles the objects of one kind.
type Reconciler[T Object] interface {
	// Reconcile makes the cluster match an object, and sets its status, which NewReconciler writes.
	// writer is that of the object.
	Reconcile(ctx context.Context, obj T, writer *Writer) (reconcile.Result, error)
}

// Options are what differs between the kinds. The zero value is valid.
type Options struct {
	// Clock tells how long an object fails; the real one if it is nil.
	Clock clock.PassiveClock
	// OnGone is called for each object that was deleted, or that cannot be decoded.
	OnGone func(types.NamespacedName)
	// Undecodable are the members of the status of an object that cannot be decoded, beside
	// observedGeneration and conditions, which all kinds have. nil removes a member.
	Undecodable map[string]any
}

// NewReconciler wraps the reconciler of a kind with what is the same for all kinds: it reads the
// object from the cache and does nothing for one that is deleted or being deleted, because
// the garbage collector deletes its children. After the reconcile it writes the status if
// that differs, and then emits a Warning event if Ready turned False for a new reason while
// the object does not progress. Nothing else that the reconciler changes in the object,
// such as its defaults, is written. A reconcile that is under way when the manager stops finishes.
//
// The object's resourceVersion is a precondition of every write, so that a stale cache, or a
// former leader, replaces no newer status. The watch event of the newer version is the retry.
func NewReconciler[T Object](c client.Client, events events.EventRecorder, kind Reconciler[T], options Options) reconcile.Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &recorder[T]{
		Options: options, client: c, events: events, kind: kind, name: reflect.TypeFor[T]().Elem().Name(),
		failures: failures{clock: options.Clock, objects: map[types.NamespacedName]failure{}},
	}
}

type recorder[T Object] struct {
	Options
	client client.Client
	events events.EventRecorder
	kind   Reconciler[T]
	// name is the kind's name, such as ModelBox.
	name     string
	failures failures
}

// retryStale is when a stale object is reconciled again if no watch event comes, as after a
// conflict that something between the controller and the API server made up.
const retryStale = 5 * time.Second

// Reconcile makes a span of each reconcile, which is not sent unless the process has a collector.
// The span has the name of the object, and nothing else of it.
func (r *recorder[T]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err() // The manager stops: nothing new begins.
	}
	ctx, cancel := finishing(ctx)
	defer cancel()
	ctx, span := otel.Tracer("modelbox-controller").Start(ctx, "reconcile "+r.name)
	span.SetAttributes(attribute.String("namespace", req.Namespace), attribute.String("name", req.Name))
	defer span.End()
	result, err := r.reconcileNamed(ctx, req)
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	return result, err
}

func (r *recorder[T]) reconcileNamed(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	err := r.client.Get(ctx, req.NamespacedName, obj)
	writer := &Writer{Owner: limit.For(r.client, obj.GetUID(), obj.GetGeneration()), client: r.client, obj: obj}
	failure, undecodable := errors.AsType[*cache.UndecodableError](err)
	if undecodable || apierrors.IsNotFound(err) {
		r.failures.forget(req.NamespacedName)
		if r.OnGone != nil {
			r.OnGone(req.NamespacedName)
		}
	}
	switch {
	case apierrors.IsNotFound(err) || obj.GetDeletionTimestamp() != nil:
		notReadyObjects.set(r.name, req.NamespacedName, "")
		differingObjects.set(r.name, req.NamespacedName, "")
		return reconcile.Result{}, nil
	case undecodable:
		return result(reconcile.Result{}, r.undecodable(ctx, obj, writer, failure))
	case err != nil:
		return reconcile.Result{}, err
	}
	return result(r.reconcile(ctx, obj, writer))
}

// result returns the result of a reconcile whose error may be that the object is stale, or that its
// status is to be written later. Another error is returned by the next reconcile then.
func result(result reconcile.Result, err error) (reconcile.Result, error) {
	later, early := errors.AsType[*limit.LaterError](err)
	switch {
	case early:
		return reconcile.Result{RequeueAfter: later.After}, nil
	case errors.Is(err, errStale):
		return reconcile.Result{RequeueAfter: retryStale}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	return result, nil
}

// reconcile calls the reconciler of the kind and writes the status that it set.
func (r *recorder[T]) reconcile(ctx context.Context, obj T, writer *Writer) (reconcile.Result, error) {
	var err error
	if writer.stored, err = json.Marshal(obj.GetStatus()); err != nil {
		return reconcile.Result{}, fmt.Errorf("encoding status: %w", err)
	}
	clamp(reflect.ValueOf(obj.GetStatus()).Elem())
	reason := readyReason(obj)
	result, err := r.kind.Reconcile(ctx, obj, writer)
	r.failures.observe(obj, err)
	notReadyObjects.observe(r.name, obj)
	differingObjects.observe(r.name, obj)
	after, encodingErr := encode(obj)
	if encodingErr != nil || bytes.Equal(writer.stored, after) || errors.Is(err, errStale) {
		return result, errors.Join(err, encodingErr)
	}
	warning := r.warning(obj, reason)
	writeErr := writer.write(ctx, obj, writer.stored, after)
	if writeErr == nil {
		r.emit(obj, warning)
	}
	if errors.Is(writeErr, errStale) && err != nil {
		writeErr = nil // The retry writes status.
	}
	return result, errors.Join(err, client.IgnoreNotFound(writeErr))
}
