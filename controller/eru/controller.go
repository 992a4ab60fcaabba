// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
)

// +kubebuilder:rbac:groups=mtsre.meitu.com,resources=erus,verbs=list;watch;create
// +kubebuilder:rbac:groups=mtsre.meitu.com,resources=erus/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// fieldManager owns, in metadata.managedFields, the time of a restart. It must not be
// apply.FieldManager: on a Deployment that a ModelBox or an App owns, the next apply would
// remove the annotation, because the desired Deployment does not have it, and that would be
// another rollout.
const fieldManager = "modelbox-eru"

// maxRequeueAfter is how long the controller relies on its timers. They do not follow a
// clock that is set, so this is how late a jump of the clock is noticed.
const maxRequeueAfter = 5 * time.Minute

// Reconciler reconciles Erus.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	target   trigger.Target[*mtsrev1.Eru]
}

// SetupWithManager adds the controllers for Erus to a manager: the one that reconciles
// them, and the one that creates those of annotated Deployments.
func SetupWithManager(mgr manager.Manager, clk clock.PassiveClock) error {
	recorder := mgr.GetEventRecorder(apply.FieldManager)
	r := &Reconciler{
		Client: mgr.GetClient(), Recorder: recorder, Clock: clk, target: target(mgr.GetClient()),
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

// recorded returns the reconciler with all that is the same for every kind.
func (r *Reconciler) recorded() reconcile.Reconciler {
	return status.RecordedWithWriteAhead(r.Client, r.Recorder, r, status.OnGone(deleteMetrics),
		status.WithUndecodable(map[string]any{"phase": mtsrev1.EruFailed, "nextScheduleTime": nil}))
}

// Reconcile decides on the scheduled times of an Eru that have come, restarts its Deployment
// if one of them is due, and sets its status. It runs the defaults and the rules of
// admission again, so that an object which was stored while the webhook was away is
// reconciled in the same way.
func (r *Reconciler) Reconcile(ctx context.Context, obj *mtsrev1.Eru, writeAhead status.WriteAhead) (reconcile.Result, error) {
	eru.Default(obj, nil, nil)
	errs := eru.Validate(obj)
	deployment, err := r.deployment(ctx, obj)
	if err != nil {
		return reconcile.Result{}, err
	}
	now, before := r.Clock.Now(), obj.Status.DeepCopy()
	decision, plan, err := decide(obj, errs, stateFromStatus(obj), deployment, now)
	if err == nil && decision.restart {
		err = r.restart(ctx, obj, deployment, &decision, plan, writeAhead)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	updateStatus(obj, before, errs, deployment, decision, now)
	r.emit(obj, deployment, decision)
	setMetrics(obj, decision)
	return reconcile.Result{RequeueAfter: requeueAfter(now, plan.wake(decision, now))}, nil
}

// deployment reads, from the cache, the Deployment that an Eru restarts, nil if there is
// none.
func (r *Reconciler) deployment(ctx context.Context, obj *mtsrev1.Eru) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	key := types.NamespacedName{Namespace: obj.Namespace, Name: obj.DeploymentNameOrDefault()}
	if err := r.Client.Get(ctx, key, deployment); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading Deployment %q: %w", key.Name, err)
	}
	return deployment, nil
}

// restart restarts the Deployment, after status says so: see status.WriteAhead. If the API
// server refuses it, the decision becomes to wait; any other error leaves everything as it
// is.
func (r *Reconciler) restart(
	ctx context.Context, obj *mtsrev1.Eru, deployment *appsv1.Deployment, d *decision, p plan, writeAhead status.WriteAhead,
) error {
	setRestarting(obj, d.next, r.Clock.Now())
	if err := writeAhead(ctx); err != nil {
		return err
	}
	err := r.patch(ctx, deployment, d.next)
	if refused, ok := errors.AsType[*apply.RefusedError](err); ok {
		d.waitForRetry(refusalReason(refused.Err), refused)
		return nil
	}
	if contested, ok := errors.AsType[*limit.ContestedError](err); ok {
		d.waitForRetry(status.ReasonContested, contested)
		return nil
	}
	if err == nil {
		d.setRestarted(p, r.Clock.Now())
	}
	return err
}

// patch is the one write to the Deployment: the scheduled time, with the resourceVersion of
// the Deployment that was read as precondition.
func (r *Reconciler) patch(ctx context.Context, deployment *appsv1.Deployment, slot time.Time) error {
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`,
		deployment.UID, deployment.ResourceVersion, annotationRestartedAt, formatTime(slot))
	named := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}}
	err := r.Client.Patch(ctx, named, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldManager))
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("restarting Deployment %q: %w", deployment.Name, err) // The cache is stale.
	}
	return apply.Refused("restarting", deployment, err)
}

// emit emits an event for each scheduled time that was decided. One whose status could not be
// written is decided again, and has another event.
func (r *Reconciler) emit(obj *mtsrev1.Eru, deployment *appsv1.Deployment, d decision) {
	var related runtime.Object
	if deployment != nil {
		related = deployment
	}
	for _, entry := range d.entries {
		note := "scheduled time " + formatTime(entry.Slot.Time)
		if entry.Reason != "" {
			note += ": " + entry.Reason
		}
		r.Recorder.Eventf(obj, related, corev1.EventTypeNormal, string(entry.Result), "Restart", "%s", note)
	}
}

// requeueAfter returns the time until an instant, 0 (never) for the zero time.
func requeueAfter(now, wake time.Time) time.Duration {
	if wake.IsZero() {
		return 0
	}
	return min(max(wake.Sub(now), time.Millisecond), maxRequeueAfter)
}
