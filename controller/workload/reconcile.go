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
	// Turns bounds the rollouts of changed configuration of all kinds; nil is no bound.
	Turns *configuration.Turns
	// Watches are the informers of the children of spec.disruption and of the other blocks.
	Watches *watches.Watches

	kind string
}

// Setup adds the controller of a kind to a manager, and sets its steps, which are a part of reconciler, but for Turns and Watches.
// It reconciles an object when the object or its children change.
func Setup[T status.Object](
	mgr manager.Manager, clk clock.PassiveClock, kind schema.GroupVersionKind, obj T,
	reconciler reconcile.ObjectReconciler[T], steps *Reconciler, children ...client.Object,
) error {
	*steps = Reconciler{
		Writer: apply.NewWriter(mgr), Clock: clk, Problems: &problems.Diagnoser{Reader: mgr.GetAPIReader(), Clock: clk},
		Freeze: freeze.Reader{Live: mgr.GetAPIReader()}, Turns: steps.Turns, Watches: steps.Watches, kind: kind.Kind,
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
	controller, err := watches.Build(status.Recorded(mgr.GetClient(), steps.Writer.Recorder, reconciler, status.Options{OnGone: steps.forget}))
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
	r.Writer.Rewrites.Forget(owner)
	r.Configuration.Forget(owner)
	r.Turns.Leave(r.subject(owner))
}

// Children are the desired and the observed children of one object, and the part of its status
// that is the same for all kinds with pods.
type Children struct {
	*Workload
	// Pods is the child that runs the pods, a Deployment or a DaemonSet.
	Pods *apply.Child
	// Service is nil for a kind that has none.
	Service *apply.Child
	// Observe returns the observed state of Pods, and copies its counters to the status of the owner.
	Observe func() Observed

	ObservedGeneration *int64
	Conditions         *[]metav1.Condition
	Problems           *[]modelv1.Problem

	surroundings surroundings
	// rewritten names the values that admission rewrote.
	rewritten string
	// configured is what Apply found out of the configuration.
	configured configured
}

// Observed is the observed state of the child that runs the pods.
type Observed struct {
	// Kind is that of the child.
	Kind string
	// Progress is the readiness of the owner after its children have been applied.
	Progress status.Readiness
	// Availability is that of the owner while the child exists.
	Availability metav1.Condition
	// Workload is the child as the problems of its pods are read from it.
	Workload problems.Workload
}

// Desired returns the desired children of a workload, whose observed state goes to into. errs
// are the errors of its spec. If these leave open what the children have to be, it returns a
// *rules.InvalidSpecError, and children without a desired state. It is pure.
func Desired(w *Workload, into *modelv1.WorkloadStatus, errs field.ErrorList) (*Children, error) {
	children := &Children{
		Workload: w, Pods: &apply.Child{Live: &appsv1.Deployment{}}, Service: &apply.Child{Live: &corev1.Service{}},
		ObservedGeneration: &into.ObservedGeneration, Conditions: &into.Conditions, Problems: &into.Problems,
	}
	children.Observe = func() Observed { return w.observe(children, into) }
	if err := Buildable(errs); err != nil {
		return children, err
	}
	deployment, err := w.Deployment()
	if err != nil {
		return children, err
	}
	children.Pods.Desired = deployment
	if len(w.Models) > 0 {
		children.Pods.Keep = func() error { return w.keepFetcher(deployment) }
		children.Pods.Verify = w.VerifyModel
	}
	if keep := children.Pods.Keep; len(w.MatchLabels) > 0 {
		children.Pods.Keep = func() error {
			if err := w.checkSelector(children.Pods.Live.(*appsv1.Deployment)); err != nil || keep == nil {
				return err
			}
			return keep()
		}
	}
	if service := w.Service(); service != nil {
		children.Service.Desired = service
	}
	children.surroundings.object = w.around()
	return children, nil
}

// all returns the children in the order in which they are written.
func (c *Children) all() []*apply.Child {
	if c.Service == nil {
		return []*apply.Child{c.Pods}
	}
	return append([]*apply.Child{c.Pods, c.Service}, c.surroundings.all()...)
}

// Apply creates, applies or deletes the children; see apply.Writer for its errors.
func (r *Reconciler) Apply(ctx context.Context, c *Children) (err error) {
	if err := r.configure(ctx, c); err != nil {
		return err
	}
	if err := c.surroundings.watch(ctx, r.Watches); err != nil {
		return err
	}
	if err := c.surroundings.rivals(ctx, r.Writer.Client, c.Owner); err != nil {
		return err
	}
	c.rewritten, err = r.Writer.ReadOnlyIf(c.Paused).Apply(ctx, c.Owner, c.all()...)
	return err
}

// UpdateStatus sets the status of the owner to the observed state. errs are the errors of its
// spec, err is the error of Apply, or of the function that returned the children. It returns the
// result of the reconcile.
func (r *Reconciler) UpdateStatus(ctx context.Context, c *Children, errs field.ErrorList, err error) (reconcile.Result, error) {
	refused, err := apply.ReadinessOf(err)
	switch {
	case refused != nil:
		*c.Problems = nil
		if err := r.Writer.Observe(ctx, c.Owner, c.all()...); err != nil {
			return reconcile.Result{}, err
		}
	case err != nil:
		return apply.Result(err)
	}
	observed := c.Observe()
	var again time.Duration
	if refused == nil {
		again = r.diagnose(ctx, c, &observed)
	} else {
		observed.Progress = *refused
	}
	r.setConditions(c, &observed, refused == nil, errs)
	result, err := apply.Result(err)
	result.RequeueAfter = trigger.Sooner(trigger.Sooner(max(result.RequeueAfter, again), c.configured.again), c.surroundings.again())
	return result, err
}

// diagnose adds to the progress of an owner whose children have been applied why its pods are not available, and
// sets its problems. Its conditions are still the stored ones. After the time that it returns, the
// pods are to be read again; 0 is never.
func (r *Reconciler) diagnose(ctx context.Context, c *Children, observed *Observed) (again time.Duration) {
	subject := &problems.Subject{Owner: c.Owner, Workload: observed.Workload, Conditions: *c.Conditions, Problems: *c.Problems}
	// A readiness that is neither Reconciling nor Stalled has another cause than the pods.
	skip := c.Paused || !observed.Progress.Reconciling && !observed.Progress.Stalled
	observed.Progress, *c.Problems, again = r.Problems.Diagnose(ctx, subject, observed.Progress, skip)
	return again
}

// setConditions sets the conditions of an owner. applied says that the children have their
// desired state.
func (r *Reconciler) setConditions(c *Children, observed *Observed, applied bool, errs field.ErrorList) {
	generation, now := c.Owner.GetGeneration(), metav1.NewTime(r.Clock.Now())
	*c.ObservedGeneration = generation
	described := observed.Progress.WithSpecErrors(errs)
	described.SetNotReady(status.ReasonRewritten, c.rewritten, true)
	described.SetNotReady(c.configured.reason, c.configured.waiting, false)
	described.AppendMessage(c.configured.note)
	described.AppendMessage(c.surroundings.note())
	described.SetConditions(c.Conditions, generation, now)
	status.SetPaused(c.Conditions, c.Paused, generation, now)
	available := observed.Availability
	if !c.Pods.Exists() {
		available = status.NoChild(observed.Kind, observed.Progress)
	}
	status.SetAvailable(c.Conditions, available, applied && observed.Workload.Observed, generation, now)
}
