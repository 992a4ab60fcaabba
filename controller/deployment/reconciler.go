// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
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
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
)

// Reconciler has the steps that write: Apply and UpdateStatus.
type Reconciler struct {
	Writer apply.Writer
	Clock  clock.PassiveClock
	// Problems finds out why the pods are not available; it may be nil.
	Problems *problems.Looker
}

// NewReconciler returns a Reconciler with the clients of a manager, and a builder of the
// controller that reconciles a kind when its objects or their children change.
func NewReconciler(mgr manager.Manager, clk clock.PassiveClock, name string, obj client.Object, kind schema.GroupVersionKind) (Reconciler, *builder.Builder) {
	own := &trigger.OwnWrites{}
	childChanged := trigger.ChildChanged(kind.GroupKind(), own)
	writer := apply.NewWriter(mgr, clk, own.Add)
	return Reconciler{
			Writer: writer, Clock: clk,
			Problems: problems.NewLooker(mgr.GetAPIReader(), clk),
		},
		builder.ControllerManagedBy(mgr).
			Named(name).
			For(obj, trigger.SpecChanged()).
			Watches(&appsv1.Deployment{}, trigger.EnqueueSameName(), childChanged).
			Watches(&corev1.Service{}, trigger.EnqueueSameName(), childChanged).
			WithOptions(trigger.Options())
}

// Children are the Deployment and the Service of one workload.
type Children struct {
	workload            *workload.Workload
	deployment, service apply.Child
	// rewritten names the values that admission rewrote.
	rewritten string
}

// Desired returns the desired children of a workload. errs are the errors of its spec. If
// these leave open what the children have to be, it returns a *rules.InvalidSpecError, and
// children without a desired state. It is pure.
func Desired(w *workload.Workload, errs field.ErrorList) (*Children, error) {
	children := &Children{
		workload:   w,
		deployment: apply.Child{Live: &appsv1.Deployment{}},
		service:    apply.Child{Live: &corev1.Service{}},
	}
	if err := workload.Buildable(errs); err != nil {
		return children, err
	}
	deployment, err := w.Deployment()
	if err != nil {
		return children, err
	}
	children.deployment.Desired = deployment
	if w.Model != nil {
		children.deployment.Keep = func() error {
			return w.KeepFetcher(deployment, children.deployment.Live.(*appsv1.Deployment))
		}
		children.deployment.Verify = w.VerifyModel
	}
	if service := w.Service(); service != nil {
		children.service.Desired = service
	}
	return children, nil
}

// Apply creates, applies or deletes the children; see apply.Writer for its errors.
func (r *Reconciler) Apply(ctx context.Context, children *Children) (err error) {
	w := children.workload
	children.rewritten, err = r.Writer.ReadOnlyIf(w.Paused).Apply(ctx, w.Owner, &children.deployment, &children.service)
	return err
}

// UpdateStatus sets the status of the owner to the observed state. errs are the errors of its
// spec, err is the error of Desired or Apply. It returns the result of the reconcile.
func (r *Reconciler) UpdateStatus(
	ctx context.Context, children *Children, into *modelv1.WorkloadStatus, errs field.ErrorList, err error,
) (reconcile.Result, error) {
	readiness, err := apply.ReadinessOf(err)
	applied := readiness == nil
	var lookAgain time.Duration
	switch {
	case readiness != nil:
		r.Problems.Skip(children.workload.Owner)
		into.Problems = nil
		if err := r.Writer.Observe(ctx, children.workload.Owner, &children.deployment, &children.service); err != nil {
			return reconcile.Result{}, err
		}
	case err != nil:
		return apply.Result(err)
	default:
		var current status.Readiness
		current, lookAgain = r.progress(ctx, children, into)
		readiness = &current
	}
	children.setObserved(into)
	described := readiness.WithSpecErrors(errs)
	described.AppendMessage(children.rewritten)
	r.setConditions(children, described, into)
	r.setAvailable(children, *readiness, applied, into)
	result, err := apply.Result(err)
	result.RequeueAfter = max(result.RequeueAfter, lookAgain)
	return result, err
}

// progress returns the readiness of an owner whose children have been applied, and sets its
// problems. into has the stored conditions still. After the time that it returns, the pods are
// to be listed again; 0 is never.
func (r *Reconciler) progress(ctx context.Context, children *Children, into *modelv1.WorkloadStatus) (status.Readiness, time.Duration) {
	w, live := children.workload, children.deployment.Live.(*appsv1.Deployment)
	readiness := Progress(live)
	explained, found, again := r.Problems.Explain(ctx, &problems.Subject{
		Owner: w.Owner, Workload: problems.OfDeployment(live), Conditions: into.Conditions, Problems: into.Problems,
	}, readiness, w.Paused)
	into.Problems = found.Problems
	return explained, again
}

// setAvailable sets the condition Available. applied says that the Deployment has its desired
// state.
func (r *Reconciler) setAvailable(children *Children, readiness status.Readiness, applied bool, into *modelv1.WorkloadStatus) {
	deployment := children.deployment.Live.(*appsv1.Deployment)
	available := status.NoChild("Deployment", readiness)
	if children.deployment.Exists() {
		available = availability(&deployment.Status)
	}
	status.SetAvailable(&into.Conditions, available, applied && isObserved(deployment),
		children.workload.Owner.GetGeneration(), metav1.NewTime(r.Clock.Now()))
}

// setObserved sets the counters and the address of a status.
func (c *Children) setObserved(into *modelv1.WorkloadStatus) {
	setReplicas(into, &c.deployment.Live.(*appsv1.Deployment).Status)
	into.Selector = c.workload.Selector().String()
	into.Address = ""
	if c.service.Exists() {
		into.Address = c.workload.Address()
	}
}

func (r *Reconciler) setConditions(children *Children, readiness status.Readiness, into *modelv1.WorkloadStatus) {
	w := children.workload
	generation, now := w.Owner.GetGeneration(), metav1.NewTime(r.Clock.Now())
	into.ObservedGeneration = generation
	readiness.SetConditions(&into.Conditions, generation, now)
	status.SetPaused(&into.Conditions, w.Paused, generation, now)
}
