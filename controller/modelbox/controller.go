// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelbox makes of each ModelBox a Deployment and a Service.
package modelbox

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/webhook/modelbox"
)

// +kubebuilder:rbac:groups=model.github.com,resources=modelboxes,verbs=get;list;watch
// +kubebuilder:rbac:groups=model.github.com,resources=modelboxes/status,verbs=patch
// +kubebuilder:rbac:groups=model.github.com,resources=modelboxes/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles ModelBoxes.
type Reconciler struct {
	workload.Reconciler
	Recorder events.EventRecorder
}

// SetupWithManager adds the controller for ModelBoxes to a manager.
func SetupWithManager(mgr manager.Manager, clk clock.PassiveClock) error {
	recorder := mgr.GetEventRecorder("modelbox-controller")
	r := &Reconciler{
		Reconciler: workload.Reconciler{
			Writer: apply.Writer{Client: mgr.GetClient(), Live: mgr.GetAPIReader()},
			Clock:  clk,
		},
		Recorder: recorder,
	}
	kind := modelv1.SchemeGroupVersion.WithKind("ModelBox").GroupKind()
	return builder.ControllerManagedBy(mgr).
		Named("modelbox").
		For(&modelv1.ModelBox{}, apply.Asked()).
		Watches(&appsv1.Deployment{}, apply.SameName(), apply.Concerns(kind)).
		Watches(&corev1.Service{}, apply.SameName(), apply.Concerns(kind)).
		WithOptions(controller.Options{RateLimiter: apply.Backoff()}).
		Complete(status.Recorded(mgr.GetClient(), recorder, r))
}

// Reconcile makes the children of a ModelBox what it asks for and fills in its
// status. It runs admission's defaults and rules again, so an object that was
// stored while the webhook was away is handled the same way.
func (r *Reconciler) Reconcile(ctx context.Context, box *modelv1.ModelBox) (reconcile.Result, error) {
	asked := box.DeepCopy()
	modelbox.Default(asked, nil, nil)
	if errs := modelbox.Validate(asked); len(errs) > 0 {
		r.Refuse(box, errs, box.Spec.Paused, &box.Status.WorkloadStatus)
		return reconcile.Result{}, nil
	}
	repairs, err := r.Reconciler.Reconcile(ctx, children(asked), box.Spec.Paused, &box.Status.WorkloadStatus)
	apply.Announce(r.Recorder, box, repairs)
	return reconcile.Result{}, err
}
