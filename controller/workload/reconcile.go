// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/configuration"
	"github.com/modelbox-operator/modelbox-operator/controller/freeze"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/schedules"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/controller/watches"
)

// Reconciler has the steps that are the same for all kinds with pods: Apply and UpdateStatus.
type Reconciler struct {
	Writer apply.Writer
	Clock  clock.PassiveClock
	// Schedules sets the replicas of the object at scheduled times.
	Schedules schedules.Step
	// Problems finds out why the pods are not available; it may be nil.
	Problems *problems.Diagnoser
	// Configuration is what the objects with spec.restartOnChange refer to; nil if that has no effect.
	Configuration *configuration.Sources
	Freeze        freeze.Reader
	// Queue bounds the rollouts of changed configuration of all kinds; nil is no bound.
	Queue *configuration.RolloutQueue
	// Watches are the informers of the children of spec.disruption and of the other blocks.
	Watches *watches.Watches

	kind string
}

// Setup adds the controller of a kind to a manager, and sets its steps, which are a part of reconciler, but for Queue and Watches.
// It reconciles an object when the object or its children change.
func Setup[T status.Object](
	mgr manager.Manager, clk clock.PassiveClock, kind schema.GroupVersionKind, obj T,
	reconciler reconcile.ObjectReconciler[T], steps *Reconciler, children ...client.Object,
) error {
	*steps = Reconciler{
		Writer: apply.NewWriter(mgr), Clock: clk, Problems: &problems.Diagnoser{Reader: mgr.GetAPIReader(), Clock: clk},
		Freeze: freeze.Reader{Live: mgr.GetAPIReader()}, Queue: steps.Queue, Watches: steps.Watches, kind: kind.Kind,
	}
	steps.Schedules = schedules.Step{Client: mgr.GetClient(), Recorder: steps.Writer.Recorder, Clock: clk, Freeze: steps.Freeze}
	watches := builder.ControllerManagedBy(mgr).
		Named(strings.ToLower(kind.Kind)).
		For(obj, trigger.Changed()).
		WithOptions(trigger.Options())
	// Children have the name of their owner. That of an owner reference would not do: an object of another owner that
	// prevents the creation of a child is seen when it is created and when it is deleted.
	for _, child := range children {
		watches.Watches(child, &handler.EnqueueRequestForObject{}, builder.WithPredicates(trigger.ChildChanged(kind.GroupKind())))
	}
	controller, err := watches.Build(status.NewReconciler(mgr.GetClient(), steps.Writer.Recorder, reconciler, status.Options{Clock: clk, OnGone: steps.forget}))
	if err != nil {
		return err
	}
	steps.Configuration = configuration.New(mgr, controller, clk)
	if steps.Watches == nil {
		return nil
	}
	return steps.Watches.Add(mgr, clk, controller, kind.GroupKind())
}

// forget removes what is held of an owner that was deleted.
func (r *Reconciler) forget(owner types.NamespacedName) {
	r.Problems.Forget(owner)
	r.Configuration.Forget(owner)
	r.Queue.Remove(r.subject(owner))
}

// Run is the part of a reconcile that is the same for all kinds with a Deployment: it writes the replicas of a scheduled time or
// applies the children, and sets the status, which into is a part of. errs are the errors of the spec. It returns the
// children if they have been applied.
func (r *Reconciler) Run(
	ctx context.Context, w *Workload, into *modelv1.WorkloadStatus, at []modelv1.Schedule, errs field.ErrorList,
) (applied *Children, result reconcile.Result, err error) {
	scaled, wake, scaling := r.Schedules.Scale(ctx, &schedules.Object{
		Object: w.Owner, Kind: w.OwnerKind, Schedules: at, Replicas: *w.Replicas, Status: &into.Schedule, Held: w.Paused,
	})
	if scaled {
		return nil, reconcile.Result{}, nil
	}
	children, err := Desired(w, into, errs)
	if err == nil {
		err = r.Apply(ctx, children)
	}
	if err == nil {
		applied = children
	}
	result, err = r.UpdateStatus(ctx, children, errs, cmp.Or(err, scaling))
	result.RequeueAfter = trigger.Sooner(result.RequeueAfter, wake)
	return applied, result, err
}

// Apply creates, applies or deletes the children; see apply.Writer for its errors.
func (r *Reconciler) Apply(ctx context.Context, c *Children) error {
	c.optional.watch(ctx, r.Watches)
	unread := c.optional.competingAutoscaler(ctx, r.Writer.Client, c.Owner)
	owner := c.owner()
	if err := r.Writer.Read(ctx, owner, c.all()...); err != nil {
		return err
	}
	unread = errors.Join(unread, r.complete(ctx, c))
	later, err := r.Writer.Write(ctx, owner, c.all()...)
	c.Status.Children, c.later = owner.Children, later
	c.recordConfiguration()
	if unread == nil {
		return err
	}
	return errors.Join(err, unread)
}

// complete completes the desired state of the child that runs the pods with what its status and the cluster say. That
// child alone is not written if it cannot. The error that it returns keeps nothing from being written.
func (r *Reconciler) complete(ctx context.Context, c *Children) (err error) {
	if c.Pods.Err == nil {
		c.Pods.Err = c.keepFetcher()
	}
	if c.Pods.Err == nil {
		err, c.Pods.Err = r.configure(ctx, c)
	}
	return err
}

// UpdateStatus sets the status of the owner to the observed state. errs are the errors of its
// spec, err is the error of Apply, or of the function that returned the children. It returns the
// result of the reconcile.
func (r *Reconciler) UpdateStatus(ctx context.Context, c *Children, errs field.ErrorList, err error) (reconcile.Result, error) {
	refused, err := apply.ReadinessOf(invalidSpec(err))
	if refused != nil || err != nil {
		r.Writer.Observe(ctx, c.Owner, c.all()...)
		if c.Pods.Err != nil {
			return apply.Result(errors.Join(err, c.Pods.Err))
		}
	}
	observed := c.Observe()
	switch {
	case refused != nil:
		c.Status.Problems = nil
	case err != nil: // If it lasts, package status says so.
		return apply.Result(err)
	case c.optional.starting:
		return reconcile.Result{RequeueAfter: whileStarting}, nil
	}
	var again time.Duration
	if refused == nil {
		again = r.diagnose(ctx, c, &observed)
	} else {
		observed.Progress = *refused
	}
	r.setConditions(c, &observed, refused == nil, errs)
	result, err := apply.Result(err)
	result.RequeueAfter = trigger.Sooner(trigger.Sooner(max(result.RequeueAfter, again), c.configured.again), c.optional.requeueAfter())
	result.RequeueAfter = trigger.Sooner(result.RequeueAfter, c.later)
	return result, err
}

// diagnose adds to the progress of an owner whose children have been applied why its pods are not available, and
// sets its problems. Its conditions are still the stored ones. After the time that it returns, the
// pods are to be read again; 0 is never.
func (r *Reconciler) diagnose(ctx context.Context, c *Children, observed *Observed) (again time.Duration) {
	subject := &problems.Subject{Owner: c.Owner, Workload: observed.Workload, Conditions: c.Status.Conditions, Problems: c.Status.Problems}
	// A readiness that is neither Reconciling nor Stalled has another cause than the pods.
	skip := c.Paused || !observed.Progress.Reconciling && !observed.Progress.Stalled
	observed.Progress, c.Status.Problems, again = r.Problems.Diagnose(ctx, subject, observed.Progress, skip)
	return again
}

// setConditions sets the conditions of an owner. applied says that the children have their
// desired state.
func (r *Reconciler) setConditions(c *Children, observed *Observed, applied bool, errs field.ErrorList) {
	generation, now := c.Owner.GetGeneration(), metav1.NewTime(r.Clock.Now())
	c.Status.ObservedGeneration = generation
	described := observed.Progress.WithSpecErrors(errs)
	described.SetNotReady(status.ReasonRewritten, apply.Rewritten(c.Status.Children), true)
	described.SetNotReady(c.configured.reason, c.configured.waiting, false)
	described.AppendMessage(c.configured.note)
	described.AppendMessage(c.optional.message())
	described.SetConditions(&c.Status.Conditions, generation, now)
	status.SetPaused(&c.Status.Conditions, c.Paused, generation, now)
	available := observed.Availability
	if !c.Pods.Exists() {
		available = status.NoChild(observed.Kind, observed.Progress)
	}
	status.SetAvailable(&c.Status.Conditions, available, applied && observed.Workload.Observed, generation, now)
}
