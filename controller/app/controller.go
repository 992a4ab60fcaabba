// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app makes of each App a Deployment and a Service.
package app

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/webhook/app"
)

// +kubebuilder:rbac:groups=app.huolala.cn,resources=apps,verbs=get;list;watch
// +kubebuilder:rbac:groups=app.huolala.cn,resources=apps/status,verbs=patch
// +kubebuilder:rbac:groups=app.huolala.cn,resources=apps/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

var kind = appv1.SchemeGroupVersion.WithKind("App")

// Reconciler reconciles Apps.
type Reconciler struct {
	workload.Reconciler
}

// SetupWithManager adds the controller for Apps to a manager.
func SetupWithManager(mgr manager.Manager, clk clock.PassiveClock) error {
	r := &Reconciler{workload.NewReconciler(mgr, clk)}
	return r.Watch(mgr, "app", &appv1.App{}, kind.GroupKind()).
		Complete(status.Recorded(mgr.GetClient(), r.Recorder, r))
}

// Reconcile makes the children of an App what it asks for and fills in its
// status. It runs admission's defaults and rules again, so an object that was
// stored while the webhook was away is handled the same way.
func (r *Reconciler) Reconcile(ctx context.Context, obj *appv1.App) (reconcile.Result, error) {
	app.Default(obj, nil, nil)
	return apply.Result(r.Bring(ctx, children(obj), app.Validate(obj), &obj.Status.WorkloadStatus))
}
