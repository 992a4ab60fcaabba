// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app reconciles Apps: each App owns a Deployment and a Service.
package app

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/app"
)

// +kubebuilder:rbac:groups=app.huolala.cn,resources=apps,verbs=get;list;watch
// +kubebuilder:rbac:groups=app.huolala.cn,resources=apps/status,verbs=patch
// +kubebuilder:rbac:groups=app.huolala.cn,resources=apps/scale,verbs=patch
// +kubebuilder:rbac:groups=app.huolala.cn,resources=apps/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete

var kind = appv1.SchemeGroupVersion.WithKind("App")

// Reconciler reconciles Apps.
type Reconciler struct {
	workload.Reconciler
}

// SetupWithManager adds the controller for Apps to a manager.
func SetupWithManager(mgr manager.Manager, shared workload.Shared) error {
	r := &Reconciler{workload.New(mgr, kind, shared)}
	return workload.Setup(mgr, &appv1.App{}, r, &r.Reconciler, &appsv1.Deployment{}, &corev1.Service{})
}

// Reconcile applies the children of an App and sets its status. It runs the defaults and
// the rules of admission again, so that an object which was stored while the webhook was
// away is reconciled in the same way.
func (r *Reconciler) Reconcile(ctx context.Context, obj *appv1.App, writer *status.Writer) (reconcile.Result, error) {
	rollout, err := r.Recall(ctx, obj, &obj.Spec, obj.Spec.OnFailedRollout, obj.Status.Rollout, new(*modelv1.FetcherStatus))
	if err != nil {
		return reconcile.Result{}, err
	}
	app.Default(obj)
	s := workload.NewState(app.Workload(obj), app.Validate(obj), &obj.Status.WorkloadStatus, writer)
	s.Rollout = rollout
	return r.Run(ctx, s, r.Scale, r.Build, r.Apply, r.Reread, r.Observe, r.RecordRollout, r.Report, r.GiveUp)
}
