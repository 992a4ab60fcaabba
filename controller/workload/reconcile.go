// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
)

// Reconciler has the steps that are the same for all kinds with pods: Apply and UpdateStatus.
type Reconciler struct {
	Writer apply.Writer
	Clock  clock.PassiveClock
	// Problems finds out why the pods are not available; it may be nil.
	Problems *problems.Diagnoser
}

// NewReconciler returns a Reconciler with the clients of a manager, and a builder of the
// controller that reconciles a kind when its objects or their children change.
func NewReconciler(
	mgr manager.Manager, clk clock.PassiveClock, obj client.Object, kind schema.GroupVersionKind, children ...client.Object,
) (Reconciler, *builder.Builder) {
	controller := builder.ControllerManagedBy(mgr).
		Named(strings.ToLower(kind.Kind)).
		For(obj, trigger.Changed()).
		WithOptions(trigger.Options())
	for _, child := range children {
		controller.Watches(child, trigger.EnqueueSameName(), trigger.ChildChanged(kind.GroupKind()))
	}
	return Reconciler{
		Writer: apply.NewWriter(mgr), Clock: clk, Problems: &problems.Diagnoser{Reader: mgr.GetAPIReader(), Clock: clk},
	}, controller
}

// Children are the desired and the observed children of one object, and the part of its status
// that is the same for all kinds with pods.
type Children struct {
	Owner  client.Object
	Paused bool
	// Pods is the child that runs the pods, a Deployment or a DaemonSet, and Observer reads it.
	Pods     *apply.Child
	Observer Observer
	// Service is nil for a kind that has none.
	Service *apply.Child

	ObservedGeneration *int64
	Conditions         *[]metav1.Condition
	Problems           *[]modelv1.Problem

	// rewritten names the values that admission rewrote.
	rewritten string
}

// Observer reads the observed state of the child that runs the pods.
type Observer interface {
	// Kind is that of the child.
	Kind() string
	// Progress returns the readiness of the owner after its children have been applied.
	Progress() status.Readiness
	// Availability returns the availability of the owner while the child exists.
	Availability() status.Availability
	// SetCounters copies the counters of the child to the status of the owner.
	SetCounters()
	// Workload returns the child as the problems of its pods are read from it.
	Workload() problems.Workload
}

// Desired returns the desired children of a workload, whose observed state goes to into. errs
// are the errors of its spec. If these leave open what the children have to be, it returns a
// *status.InvalidSpecError, and children without a desired state. It is pure.
func Desired(w *Workload, into *modelv1.WorkloadStatus, errs field.ErrorList) (*Children, error) {
	o := &observer{workload: w, into: into, pods: &apply.Child{Live: &appsv1.Deployment{}}, service: &apply.Child{Live: &corev1.Service{}}}
	children := &Children{
		Owner: w.Owner, Paused: w.Paused, Pods: o.pods, Service: o.service, Observer: o,
		ObservedGeneration: &into.ObservedGeneration, Conditions: &into.Conditions, Problems: &into.Problems,
	}
	if err := Buildable(errs); err != nil {
		return children, err
	}
	deployment, err := w.Deployment()
	if err != nil {
		return children, err
	}
	children.Pods.Desired = deployment
	if w.Model != nil {
		children.Pods.Keep = func() error { return w.keepFetcher(deployment) }
		children.Pods.Verify = w.VerifyModel
	}
	if service := w.Service(); service != nil {
		children.Service.Desired = service
	}
	return children, nil
}

// all returns the children in the order in which they are written.
func (c *Children) all() []*apply.Child {
	if c.Service == nil {
		return []*apply.Child{c.Pods}
	}
	return []*apply.Child{c.Pods, c.Service}
}

// Apply creates, applies or deletes the children; see apply.Writer for its errors.
func (r *Reconciler) Apply(ctx context.Context, c *Children) (err error) {
	c.rewritten, err = r.Writer.ReadOnlyIf(c.Paused).Apply(ctx, c.Owner, c.all()...)
	return err
}

// UpdateStatus sets the status of the owner to the observed state. errs are the errors of its
// spec, err is the error of Apply, or of the function that returned the children. It returns the
// result of the reconcile.
func (r *Reconciler) UpdateStatus(ctx context.Context, c *Children, errs field.ErrorList, err error) (reconcile.Result, error) {
	readiness, err := apply.ReadinessOf(err)
	applied := readiness == nil
	var again time.Duration
	switch {
	case !applied:
		*c.Problems = nil
		if err := r.Writer.Observe(ctx, c.Owner, c.all()...); err != nil {
			return reconcile.Result{}, err
		}
	case err != nil:
		return apply.Result(err)
	default:
		var current status.Readiness
		current, again = r.progress(ctx, c)
		readiness = &current
	}
	c.Observer.SetCounters()
	r.setConditions(c, *readiness, applied, errs)
	result, err := apply.Result(err)
	result.RequeueAfter = max(result.RequeueAfter, again)
	return result, err
}

// progress returns the readiness of an owner whose children have been applied, and sets its
// problems. Its conditions are still the stored ones. After the time that it returns, the pods
// are to be read again; 0 is never.
func (r *Reconciler) progress(ctx context.Context, c *Children) (status.Readiness, time.Duration) {
	readiness := c.Observer.Progress()
	subject := &problems.Subject{
		Owner: c.Owner, Workload: c.Observer.Workload(), Conditions: *c.Conditions, Problems: *c.Problems,
	}
	// A readiness that is neither Reconciling nor Stalled has another cause than the pods.
	skip := c.Paused || !readiness.Reconciling && !readiness.Stalled
	explained, found, again := r.Problems.Diagnose(ctx, subject, readiness, skip)
	*c.Problems = found
	return explained, again
}

// setConditions sets the conditions of an owner. applied says that the children have their
// desired state.
func (r *Reconciler) setConditions(c *Children, readiness status.Readiness, applied bool, errs field.ErrorList) {
	generation, now := c.Owner.GetGeneration(), metav1.NewTime(r.Clock.Now())
	*c.ObservedGeneration = generation
	described := readiness.WithSpecErrors(errs)
	described.SetRewritten(c.rewritten)
	described.SetConditions(c.Conditions, generation, now)
	status.SetPaused(c.Conditions, c.Paused, generation, now)
	available := status.NoChild(c.Observer.Kind(), readiness)
	if c.Pods.Exists() {
		available = c.Observer.Availability()
	}
	status.SetAvailable(c.Conditions, available, applied && c.Observer.Workload().Observed, generation, now)
}
