// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eru reconciles Erus: each restarts an existing Deployment, with a rolling update,
// on a cron schedule. API and messages call a time of the schedule a scheduled time, as
// CronJob does; history[].slot contains one.
//
// No goroutine and no timer holds a schedule. What was decided is in the Eru's status, what
// was done is in the Deployment's pod template, and each reconcile computes from the two,
// and from the clock, what is due:
//
//   - status.nextScheduleTime is the first scheduled time that is not decided. It moves
//     beyond a scheduled time only in the write that adds the outcome to status.history,
//     and it is never before status.lastScheduleTime, whatever is changed in the spec.
//   - status.pending is the scheduled time that has come and waits, and why. It is written
//     before a restart too, with the time of the attempt. No condition and no event is read.
//   - A restart is one write: the scheduled time becomes the annotation
//     kubectl.kubernetes.io/restartedAt of the pod template, with the resourceVersion of
//     the Deployment that was read as precondition, and only if it moves forward.
//
// So a repeated reconcile finds its own work and continues. After a crash before a write the
// decision is repeated; after a crash that follows a write, the next reconcile finds what was
// written. Of two leaders one gets a conflict from the API server, because both writes have
// a resourceVersion. The only exception is another client that removes the annotation, or
// sets an older time, between the two writes of a scheduled time.
//
// Nothing moves back with the clock. A clock that was far ahead for a while leaves a
// nextScheduleTime that is as far ahead; a new Eru, and a "kubectl rollout restart" to
// bring restartedAt back, end that.
//
// A scheduled time is worked on from that time plus its jitter until the deadline after
// that, or until the next one is due. Where more than one has passed, only the latest is
// worked on; history contains the one before it, and that entry (Superseded, or
// MissedDeadline for the latest itself) stands for all earlier ones that are not in history.
// They are not counted, so a year of downtime costs what a minute costs.
//
// A scheduled time counts only if it is after the instant from which the spec counts. For an
// Eru as it was created that is its creation. For a changed spec, a change of enabled
// included, that instant is not recorded anywhere, so it is the one at which the change is
// observed; of the scheduled times before it, only the one in status counts, and only if it
// is the latest one of the new spec too. So a change while the controller is away can cost
// a late restart, but never causes one that the spec did not contain.
package eru

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/freeze"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
)

// +kubebuilder:rbac:groups=mtsre.meitu.com,resources=erus,verbs=list;watch;create
// +kubebuilder:rbac:groups=mtsre.meitu.com,resources=erus/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;patch

// Reconciler reconciles Erus.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	Freeze   freeze.Reader
	target   trigger.Target[*mtsrev1.Eru]
}

// SetupWithManager adds the controllers for Erus to a manager: the one that reconciles
// them, and the one that creates those of annotated Deployments.
func SetupWithManager(mgr manager.Manager, shared workload.Shared) error {
	recorder := mgr.GetEventRecorder(apply.FieldManager)
	r := &Reconciler{
		Client: mgr.GetClient(), Recorder: recorder, Clock: shared.Clock, Freeze: freeze.Reader{Live: mgr.GetAPIReader()}, target: target(mgr.GetClient()),
	}
	if err := r.target.Index(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("indexing Erus by their Deployment: %w", err)
	}
	if err := r.watch(mgr).Complete(r.recorded()); err != nil {
		return err
	}
	b := &Binder{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: recorder}
	return b.watch(mgr).Complete(reconcile.AsReconciler(b.Client, b))
}

// target indexes Erus by their Deployment.
func target(reader client.Reader) trigger.Target[*mtsrev1.Eru] {
	return trigger.Target[*mtsrev1.Eru]{
		Client: reader,
		List:   func() client.ObjectList { return &mtsrev1.EruList{} },
		Name:   (*mtsrev1.Eru).DeploymentNameOrDefault,
	}
}

// watch watches Erus and their Deployments. Every change of a Deployment enqueues its Erus,
// because that is how the end of a rollout is seen.
func (r *Reconciler) watch(mgr manager.Manager) *builder.Builder {
	return builder.ControllerManagedBy(mgr).
		Named("eru").
		For(&mtsrev1.Eru{}, trigger.Changed()).
		Watches(&appsv1.Deployment{}, r.target.EnqueueNamed(), trigger.Changed()).
		WithOptions(trigger.Options())
}

// recorded returns the reconciler with all that is the same for every kind.
func (r *Reconciler) recorded() reconcile.Reconciler {
	return status.NewReconciler(r.Client, r.Recorder, r, status.Options{
		Clock: r.Clock, OnGone: nextRestarts.remove, Undecodable: map[string]any{"phase": mtsrev1.EruFailed, "nextScheduleTime": nil},
	})
}

// Reconcile decides on the scheduled times of an Eru that have come, restarts its Deployment
// if one of them is due, and sets its status. It runs the defaults and the rules of
// admission again, so that an object which was stored while the webhook was away is
// reconciled in the same way.
func (r *Reconciler) Reconcile(ctx context.Context, obj *mtsrev1.Eru, writer *status.Writer) (reconcile.Result, error) {
	eru.Default(obj)
	errs := eru.Validate(obj)
	deployment, err := workload.Target(ctx, r.Client, obj.Namespace, obj.DeploymentNameOrDefault())
	if err != nil {
		return reconcile.Result{}, err
	}
	now, before := r.Clock.Now(), obj.Status.DeepCopy()
	decision, plan, err := decide(obj, errs, deployment, now)
	if err == nil && decision.restart {
		err = r.restart(ctx, obj, writer, deployment, &decision, plan)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	updateStatus(obj, before, errs, deployment, decision, plan, now)
	r.emit(obj, deployment, decision)
	setMetrics(obj, decision)
	return reconcile.Result{RequeueAfter: trigger.Until(plan.wake(decision, now), now)}, nil
}
