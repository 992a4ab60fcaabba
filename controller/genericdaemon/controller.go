// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package genericdaemon reconciles Genericdaemons: each Genericdaemon owns a DaemonSet.
package genericdaemon

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/spans"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/kinds/genericdaemon"
)

// +kubebuilder:rbac:groups=mydomain.com,resources=genericdaemons,verbs=get;list;watch
// +kubebuilder:rbac:groups=mydomain.com,resources=genericdaemons/status,verbs=patch
// +kubebuilder:rbac:groups=mydomain.com,resources=genericdaemons/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

var kind = mydomainv1beta1.SchemeGroupVersion.WithKind("Genericdaemon")

// Reconciler reconciles Genericdaemons.
type Reconciler struct {
	Writer apply.Writer
	Clock  clock.PassiveClock
	// Problems finds out why the pods are not available; it may be nil.
	Problems *problems.Looker
}

// SetupWithManager adds the controller for Genericdaemons to a manager.
func SetupWithManager(mgr manager.Manager, clk clock.PassiveClock) error {
	return setup(mgr, clk, problems.NewLooker(mgr.GetAPIReader(), clk))
}

// SetupWithoutNodes is SetupWithManager for a process that may not list nodes, because it is
// limited to namespaces.
func SetupWithoutNodes(mgr manager.Manager, clk clock.PassiveClock) error {
	looker := problems.NewLooker(mgr.GetAPIReader(), clk)
	looker.WithoutNodes = true
	return setup(mgr, clk, looker)
}

func setup(mgr manager.Manager, clk clock.PassiveClock, looker *problems.Looker) error {
	own := &trigger.OwnWrites{}
	writer := apply.NewWriter(mgr, clk, own.Add)
	r := &Reconciler{Writer: writer, Clock: clk, Problems: looker}
	recorded := status.Recorded(mgr.GetClient(), r.Writer.Recorder, r, status.OnGone(looker.Forget))
	return builder.ControllerManagedBy(mgr).
		Named("genericdaemon").
		For(&mydomainv1beta1.Genericdaemon{}, trigger.SpecChanged()).
		Watches(&appsv1.DaemonSet{}, trigger.EnqueueSameName(), trigger.ChildChanged(kind.GroupKind(), own)).
		WithOptions(trigger.Options()).
		Complete(spans.Reconciler(mgr, kind.Kind, recorded))
}

// Reconcile applies the DaemonSet of a Genericdaemon and sets its status. It runs the
// defaults and the rules of admission again, so that an object which was stored while the
// webhook was away is reconciled in the same way.
func (r *Reconciler) Reconcile(ctx context.Context, daemon *mydomainv1beta1.Genericdaemon) (reconcile.Result, error) {
	genericdaemon.Default(daemon, nil, nil)
	errs := genericdaemon.Validate(daemon)
	child, err := desired(daemon, errs)
	var rewritten string
	if err == nil {
		rewritten, err = r.Writer.ReadOnlyIf(daemon.Spec.Paused).Apply(ctx, daemon, child)
	}
	return r.updateStatus(ctx, daemon, child, errs, rewritten, err)
}

// updateStatus sets the status to the observed state. errs are the errors of the spec, err is
// the error of desired or Apply. It returns the result of the reconcile.
func (r *Reconciler) updateStatus(
	ctx context.Context, daemon *mydomainv1beta1.Genericdaemon, child *apply.Child, errs field.ErrorList, rewritten string, err error,
) (reconcile.Result, error) {
	readiness, err := apply.ReadinessOf(err)
	applied := readiness == nil
	var lookAgain time.Duration
	switch {
	case readiness != nil:
		r.Problems.Skip(daemon)
		daemon.Status.Problems, daemon.Status.MissingNodes = nil, nil
		if err := r.Writer.Observe(ctx, daemon, child); err != nil {
			return reconcile.Result{}, err
		}
	case err != nil:
		return apply.Result(err)
	default:
		var current status.Readiness
		current, lookAgain = r.progress(ctx, daemon, child.Live.(*appsv1.DaemonSet))
		readiness = &current
	}
	set := child.Live.(*appsv1.DaemonSet)
	setNodes(&daemon.Status, &set.Status)
	described := readiness.WithSpecErrors(errs)
	described.AppendMessage(rewritten)
	r.setConditions(daemon, described)
	status.SetAvailable(&daemon.Status.Conditions, availability(child.Exists(), &set.Status, daemon.Spec.Label, *readiness),
		applied && isObserved(set), daemon.Generation, metav1.NewTime(r.Clock.Now()))
	result, err := apply.Result(err)
	result.RequeueAfter = max(result.RequeueAfter, lookAgain)
	return result, err
}

// progress returns the readiness of a Genericdaemon whose DaemonSet has been applied, and sets its
// problems and missing nodes. The stored conditions are
// still those of status. After the time that it returns, the pods are to be listed again; 0 is
// never.
func (r *Reconciler) progress(
	ctx context.Context, daemon *mydomainv1beta1.Genericdaemon, live *appsv1.DaemonSet,
) (status.Readiness, time.Duration) {
	readiness, into := progress(live, daemon.Spec.Label), &daemon.Status
	explained, found, again := r.Problems.Explain(ctx, &problems.Subject{
		Owner: daemon, Workload: problems.OfDaemonSet(live),
		Conditions: into.Conditions, Problems: into.Problems, MissingNodes: into.MissingNodes,
	}, readiness, daemon.Spec.Paused || readiness.Reason == reasonNoMatchingNodes)
	into.Problems, into.MissingNodes = found.Problems, found.MissingNodes
	return explained, again
}

func (r *Reconciler) setConditions(daemon *mydomainv1beta1.Genericdaemon, readiness status.Readiness) {
	now := metav1.NewTime(r.Clock.Now())
	daemon.Status.ObservedGeneration = daemon.Generation
	readiness.SetConditions(&daemon.Status.Conditions, daemon.Generation, now)
	status.SetPaused(&daemon.Status.Conditions, daemon.Spec.Paused, daemon.Generation, now)
}
