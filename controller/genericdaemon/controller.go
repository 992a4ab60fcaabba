// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package genericdaemon reconciles Genericdaemons: each Genericdaemon owns a DaemonSet.
package genericdaemon

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/genericdaemon"
)

// +kubebuilder:rbac:groups=mydomain.com,resources=genericdaemons,verbs=get;list;watch
// +kubebuilder:rbac:groups=mydomain.com,resources=genericdaemons/status,verbs=patch
// +kubebuilder:rbac:groups=mydomain.com,resources=genericdaemons/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

var kind = mydomainv1beta1.SchemeGroupVersion.WithKind("Genericdaemon")

// Reconciler reconciles Genericdaemons.
type Reconciler struct {
	workload.Reconciler
}

// SetupWithManager returns a function that adds the controller for Genericdaemons to a manager.
func SetupWithManager(shared workload.Reconciler) func(manager.Manager, clock.PassiveClock) error {
	return func(mgr manager.Manager, clk clock.PassiveClock) error {
		r := &Reconciler{shared}
		return workload.Setup(mgr, clk, kind, &mydomainv1beta1.Genericdaemon{}, r, &r.Reconciler, &appsv1.DaemonSet{})
	}
}

// Reconcile applies the DaemonSet of a Genericdaemon and sets its status. It runs the
// defaults and the rules of admission again, so that an object which was stored while the
// webhook was away is reconciled in the same way.
func (r *Reconciler) Reconcile(ctx context.Context, daemon *mydomainv1beta1.Genericdaemon) (reconcile.Result, error) {
	genericdaemon.Default(daemon, nil, nil)
	errs := genericdaemon.Validate(daemon)
	children, err := desired(daemon, errs)
	if err == nil {
		err = r.Apply(ctx, children)
	}
	return r.UpdateStatus(ctx, children, errs, err)
}
