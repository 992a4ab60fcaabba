// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelbox makes of each ModelBox a Deployment and a Service.
package modelbox

import (
	"context"

	"k8s.io/utils/clock"
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

var kind = modelv1.SchemeGroupVersion.WithKind("ModelBox")

// Reconciler reconciles ModelBoxes.
type Reconciler struct {
	workload.Reconciler
}

// SetupWithManager adds the controller for ModelBoxes to a manager.
func SetupWithManager(mgr manager.Manager, clk clock.PassiveClock) error {
	r := &Reconciler{workload.NewReconciler(mgr, clk)}
	return r.Watch(mgr, "modelbox", &modelv1.ModelBox{}, kind.GroupKind()).
		Complete(status.Recorded(mgr.GetClient(), r.Recorder, r))
}

// Reconcile makes the children of a ModelBox what it asks for and fills in its
// status. It runs admission's defaults and rules again, so an object that was
// stored while the webhook was away is handled the same way.
func (r *Reconciler) Reconcile(ctx context.Context, box *modelv1.ModelBox) (reconcile.Result, error) {
	modelbox.Default(box, nil, nil)
	return apply.Result(r.Bring(ctx, children(box), modelbox.Validate(box), &box.Status.WorkloadStatus))
}
