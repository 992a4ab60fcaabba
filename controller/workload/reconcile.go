// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// Reconciler makes of a workload a Deployment and a Service, and says in a
// status how they are.
type Reconciler struct {
	Writer   apply.Writer
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
}

// NewReconciler is a Reconciler with what a manager has.
func NewReconciler(mgr manager.Manager, clk clock.PassiveClock) Reconciler {
	return Reconciler{
		Writer:   apply.Writer{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Fresh: &apply.Fresh{}, Memory: &apply.Memory{Clock: clk}},
		Recorder: mgr.GetEventRecorder(apply.FieldManager),
		Clock:    clk,
	}
}

// Watch watches a kind and what may become of its objects.
func (r *Reconciler) Watch(mgr manager.Manager, name string, obj client.Object, kind schema.GroupKind) *builder.Builder {
	concerns := apply.Concerns(kind, r.Writer.Fresh)
	return builder.ControllerManagedBy(mgr).
		Named(name).
		For(obj, apply.Asked()).
		Watches(&appsv1.Deployment{}, apply.SameName(), concerns).
		Watches(&corev1.Service{}, apply.SameName(), concerns).
		WithOptions(controller.Options{RateLimiter: apply.Backoff()})
}

// Bring brings the children of a workload to what it asks for, mends what was
// changed, and fills in its status. errs are the errors of the spec. Nothing is written
// only where they leave open what the children should be; with any other error the
// children are built, the API server has the last word on them, and the message of
// Ready quotes the errors: a rule that is newer than a stored object must not stop the
// scaling and the repair of what runs. An error is worth another attempt.
func (r *Reconciler) Bring(ctx context.Context, w *Workload, errs field.ErrorList, into *modelv1.WorkloadStatus) error {
	deployment, err := r.children(ctx, w, errs)
	verdict, err := Judge(err)
	if verdict == nil && err != nil {
		return err
	}
	if verdict != nil {
		if err := r.observeOwn(ctx, w, into); err != nil {
			return err
		}
	} else {
		progress := Progress(deployment)
		verdict = &progress
		observe(deployment, into)
		into.Address = w.Address()
	}
	into.Selector = w.Selector().String()
	r.conclude(w, verdict.WithErrors(errs), into)
	return err
}

// observeOwn fills in the counters and the address where the children were not brought
// to what the workload asks for. An object of the child's name that belongs to another
// owner counts nothing: its pods are not this object's, whatever /scale is asked for.
func (r *Reconciler) observeOwn(ctx context.Context, w *Workload, into *modelv1.WorkloadStatus) error {
	deployment, service := &appsv1.Deployment{}, &corev1.Service{}
	if _, err := ReadOwn(ctx, r.Writer.Client, w.Owner, deployment); err != nil {
		return err
	}
	served, err := ReadOwn(ctx, r.Writer.Client, w.Owner, service)
	if err != nil {
		return err
	}
	observe(deployment, into)
	into.Address = ""
	if served {
		into.Address = w.Address()
	}
	return nil
}

func (r *Reconciler) conclude(w *Workload, verdict status.Verdict, into *modelv1.WorkloadStatus) {
	generation, now := w.Owner.GetGeneration(), metav1.NewTime(r.Clock.Now())
	into.ObservedGeneration = generation
	verdict.Add(w.rewritten)
	verdict.Set(&into.Conditions, generation, now)
	status.SetPaused(&into.Conditions, w.Paused, generation, now)
}

func (r *Reconciler) children(ctx context.Context, w *Workload, errs field.ErrorList) (*appsv1.Deployment, error) {
	if err := Buildable(errs); err != nil {
		return nil, err
	}
	desired, err := w.Deployment()
	if err != nil {
		return nil, err
	}
	deployment := &apply.Child{Name: w.Owner.GetName(), Live: &appsv1.Deployment{}, Desired: desired}
	service := &apply.Child{Name: w.Owner.GetName(), Live: &corev1.Service{}}
	if desired := w.Service(); desired != nil {
		service.Desired = desired
	}
	writer := r.Writer
	writer.ReadOnly = w.Paused
	report, err := writer.Children(ctx, w.Owner, deployment, service)
	apply.Announce(r.Recorder, w.Owner, report)
	w.rewritten = report.Describe()
	return deployment.Live.(*appsv1.Deployment), err
}
