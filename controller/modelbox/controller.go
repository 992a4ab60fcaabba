// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelbox reconciles ModelBoxes: each ModelBox owns a Deployment and a Service.
package modelbox

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
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
	// Fetcher is what the operator decides of the container that fetches a model.
	Fetcher modelsource.Fetcher
}

// SetupWithManager returns a function that adds the controller for ModelBoxes to a manager.
func SetupWithManager(fetcher modelsource.Fetcher) func(manager.Manager, clock.PassiveClock) error {
	return func(mgr manager.Manager, clk clock.PassiveClock) error {
		steps, controller := workload.NewReconciler(mgr, clk, &modelv1.ModelBox{}, kind, &appsv1.Deployment{}, &corev1.Service{})
		reconciler := &Reconciler{Reconciler: steps, Fetcher: fetcher}
		recorded := status.Recorded(mgr.GetClient(), steps.Writer.Recorder, reconciler, status.OnGone(steps.Problems.Forget), status.OnGone(steps.Writer.Rewrites.Forget))
		return controller.Complete(recorded)
	}
}

// Reconcile applies the children of a ModelBox and sets its status. It runs the defaults and
// the rules of admission again, so that an object which was stored while the webhook was
// away is reconciled in the same way. What the object has no default for stays so: a default
// that is newer than it would restart its pods.
func (r *Reconciler) Reconcile(ctx context.Context, box *modelv1.ModelBox) (reconcile.Result, error) {
	modelbox.DefaultStored(box)
	errs := modelbox.Validate(box)
	pods := workloadOf(box, r.Fetcher)
	children, err := workload.Desired(pods, &box.Status.WorkloadStatus, errs)
	if err == nil {
		err = r.Apply(ctx, children)
	}
	if err == nil {
		box.Status.Fetcher, err = pods.FetcherStatus(children.Pods.Desired.(*appsv1.Deployment))
	}
	return r.UpdateStatus(ctx, children, errs, err)
}
