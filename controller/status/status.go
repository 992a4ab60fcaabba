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

	jsonpatch "github.com/evanphx/json-patch/v5"
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

type writeAheadKey struct{}

// WriteFirst writes the status that the object of a reconcile has now, whether it differs or not. ctx is that of a
// Reconcile which NewReconciler calls. It is called before a write to an object that is not a child, and which therefore has no
// annotation that names the generation it was written for: an object that has changed since it entered the
// cache (another spec, or the status of another leader) causes a conflict, so that nothing is written to
// the other one. Reconcile returns the error as it is.
func WriteFirst(ctx context.Context) error {
	return ctx.Value(writeAheadKey{}).(func(context.Context) error)(ctx)
}

// Options are what differs between the kinds. The zero value is valid.
type Options struct {
	// Clock tells how long an object fails; the real one if it is nil.
	Clock clock.PassiveClock
	// OnGone is called for each object that was deleted, or that cannot be decoded.
	OnGone func(types.NamespacedName)
	// Undecodable are the members of the status of an object that cannot be decoded, beside observedGeneration and
	// conditions, which all kinds have. nil removes a member.
	Undecodable map[string]any
}

// NewReconciler wraps the reconciler of a kind with what is the same for all kinds: it reads the
// object from the cache and does nothing for one that is deleted or being deleted, because
// the garbage collector deletes its children. After the reconcile it writes the status if
// that differs, and then emits a Warning event if Ready turned False for a new reason while
// the object does not progress. Nothing else that the reconciler changes in the object,
// such as its defaults, is written.
//
// The object's resourceVersion is a precondition of every write, so that a stale cache, or a
// former leader, replaces no newer status. The watch event of the newer version is the retry.
func NewReconciler[T Object](c client.Client, events events.EventRecorder, kind reconcile.ObjectReconciler[T], options Options) reconcile.Reconciler {
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
	kind   reconcile.ObjectReconciler[T]
	// name is the kind's name, such as ModelBox.
	name     string
	failures failures
}

// errStale reports that the API server has a newer version of the object than the cache.
var errStale = errors.New("the informer cache does not have the last change of the object yet")

// retryStale is when a stale object is reconciled again if no watch event comes, as after a
// conflict that something between the controller and the API server made up.
const retryStale = 5 * time.Second

// Reconcile makes a span of each reconcile, which is not sent unless the process has a collector. The
// span has the name of the object, and nothing else of it.
func (r *recorder[T]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
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
	ctx = limit.For(ctx, r.client, obj.GetUID(), obj.GetGeneration())
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
		return reconcile.Result{}, nil
	case undecodable:
		return result(reconcile.Result{}, r.undecodable(ctx, obj, failure))
	case err != nil:
		return reconcile.Result{}, err
	}
	return result(r.reconcile(ctx, obj))
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
func (r *recorder[T]) reconcile(ctx context.Context, obj T) (reconcile.Result, error) {
	before, err := json.Marshal(obj.GetStatus())
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("encoding status: %w", err)
	}
	clamp(reflect.ValueOf(obj.GetStatus()).Elem())
	reason := readyReason(obj)
	writeAhead := func(ctx context.Context) (err error) {
		before, err = r.writeAhead(ctx, obj, before)
		return err
	}
	result, err := r.kind.Reconcile(context.WithValue(ctx, writeAheadKey{}, writeAhead), obj)
	r.failures.observe(obj, err)
	notReadyObjects.observe(r.name, obj)
	after, encodingErr := encode(obj)
	if encodingErr != nil || bytes.Equal(before, after) || errors.Is(err, errStale) {
		return result, errors.Join(err, encodingErr)
	}
	warning := r.warning(obj, reason)
	writeErr := r.write(ctx, obj, before, after)
	if writeErr == nil {
		r.emit(obj, warning)
	}
	if errors.Is(writeErr, errStale) && err != nil {
		writeErr = nil // The retry writes status.
	}
	return result, errors.Join(err, client.IgnoreNotFound(writeErr))
}

// encode returns the status of an object, as it can be stored, in JSON.
func encode(obj Object) ([]byte, error) {
	clamp(reflect.ValueOf(obj.GetStatus()).Elem())
	return json.Marshal(obj.GetStatus())
}

// writeAhead writes the status that the object has now to the version of the object that
// was read, and returns it.
func (r *recorder[T]) writeAhead(ctx context.Context, obj T, before []byte) ([]byte, error) {
	after, err := encode(obj)
	if err != nil {
		return before, fmt.Errorf("encoding status: %w", err)
	}
	// The client decodes the response into the object that it is given, and obj has defaults
	// that are not stored.
	response := obj.DeepCopyObject().(T)
	if err := r.write(ctx, response, before, after); err != nil {
		return before, err
	}
	obj.SetResourceVersion(response.GetResourceVersion())
	return after, nil
}

// write writes what differs between two states of a status, as JSON, to the version of obj
// that was read, and decodes the response into obj. It returns errStale if the API server has
// another version.
func (r *recorder[T]) write(ctx context.Context, obj client.Object, before, after []byte, with ...client.SubResourcePatchOption) error {
	difference, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return fmt.Errorf("comparing status: %w", err)
	}
	body := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"status":%s}`, obj.GetResourceVersion(), difference)
	err = r.client.Status().Patch(ctx, obj, client.RawPatch(types.MergePatchType, body), with...)
	if apierrors.IsConflict(err) {
		return errStale
	}
	if err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	return nil
}
