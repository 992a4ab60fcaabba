// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package genericdaemon makes of each Genericdaemon a DaemonSet.
package genericdaemon

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/webhook/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// +kubebuilder:rbac:groups=mydomain.com,resources=genericdaemons,verbs=list;watch
// +kubebuilder:rbac:groups=mydomain.com,resources=genericdaemons/status,verbs=patch
// +kubebuilder:rbac:groups=mydomain.com,resources=genericdaemons/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

var kind = mydomainv1beta1.SchemeGroupVersion.WithKind("Genericdaemon")

// Reconciler reconciles Genericdaemons.
type Reconciler struct {
	Writer   apply.Writer
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
}

// SetupWithManager adds the controller for Genericdaemons to a manager.
func SetupWithManager(mgr manager.Manager, clk clock.PassiveClock) error {
	r := &Reconciler{
		Writer:   apply.Writer{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Fresh: &apply.Fresh{}},
		Recorder: mgr.GetEventRecorder(apply.FieldManager),
		Clock:    clk,
	}
	return builder.ControllerManagedBy(mgr).
		Named("genericdaemon").
		For(&mydomainv1beta1.Genericdaemon{}, apply.Asked()).
		Watches(&appsv1.DaemonSet{}, apply.SameName(), apply.Concerns(kind.GroupKind(), r.Writer.Fresh)).
		WithOptions(controller.Options{RateLimiter: apply.Backoff()}).
		Complete(status.Recorded(mgr.GetClient(), r.Recorder, r))
}

// Reconcile makes the DaemonSet of a Genericdaemon what it asks for and fills in
// its status. It runs admission's defaults and rules again, so an object that was
// stored while the webhook was away is handled the same way.
func (r *Reconciler) Reconcile(ctx context.Context, daemon *mydomainv1beta1.Genericdaemon) (reconcile.Result, error) {
	genericdaemon.Default(daemon, nil, nil)
	if errs := genericdaemon.Validate(daemon); len(errs) > 0 {
		r.conclude(daemon, status.Stuck(status.ReasonInvalidSpec, rules.First(errs).ToAggregate().Error()))
		return reconcile.Result{}, nil
	}
	live, err := r.bring(ctx, daemon)
	verdict, err := apply.Judge(err)
	if verdict == nil && err != nil {
		return reconcile.Result{}, err
	}
	if verdict == nil {
		verdict = progress(live, daemon.Spec.Label)
	}
	observe(live, &daemon.Status)
	r.conclude(daemon, *verdict)
	return reconcile.Result{}, err
}

func (r *Reconciler) bring(ctx context.Context, asked *mydomainv1beta1.Genericdaemon) (*appsv1.DaemonSet, error) {
	desired, err := daemonSet(asked)
	if err != nil {
		return nil, err
	}
	child := &apply.Child{Name: asked.Name, Live: &appsv1.DaemonSet{}, Desired: desired}
	writer := r.Writer
	writer.ReadOnly = asked.Spec.Paused
	repairs, err := writer.Children(ctx, asked, child)
	apply.Announce(r.Recorder, asked, repairs)
	return child.Live.(*appsv1.DaemonSet), err
}

func (r *Reconciler) conclude(daemon *mydomainv1beta1.Genericdaemon, verdict status.Verdict) {
	now := metav1.NewTime(r.Clock.Now())
	daemon.Status.ObservedGeneration = daemon.Generation
	verdict.Set(&daemon.Status.Conditions, daemon.Generation, now)
	status.SetPaused(&daemon.Status.Conditions, daemon.Spec.Paused, daemon.Generation, now)
}
