// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package genericdaemon reconciles Genericdaemons: each Genericdaemon owns a DaemonSet.
package genericdaemon

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/genericdaemon"
)

// +kubebuilder:rbac:groups=mydomain.com,resources=genericdaemons,verbs=get;list;watch
// +kubebuilder:rbac:groups=mydomain.com,resources=genericdaemons/status,verbs=patch
// +kubebuilder:rbac:groups=mydomain.com,resources=genericdaemons/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get;list;watch;create;patch

var kind = mydomainv1beta1.SchemeGroupVersion.WithKind("Genericdaemon")

// Reconciler reconciles Genericdaemons.
type Reconciler struct {
	workload.Reconciler
}

// SetupWithManager adds the controller for Genericdaemons to a manager.
func SetupWithManager(mgr manager.Manager, shared workload.Shared) error {
	shared.Watches = nil // A Genericdaemon has no optional children.
	r := &Reconciler{workload.New(mgr, kind, shared)}
	return workload.Setup(mgr, &mydomainv1beta1.Genericdaemon{}, r, &r.Reconciler, &appsv1.DaemonSet{})
}

// Reconcile applies the DaemonSet of a Genericdaemon and sets its status. It runs the
// defaults and the rules of admission again, so that an object which was stored while the
// webhook was away is reconciled in the same way.
func (r *Reconciler) Reconcile(ctx context.Context, daemon *mydomainv1beta1.Genericdaemon, writer *status.Writer) (reconcile.Result, error) {
	genericdaemon.Default(daemon)
	s := workload.NewDaemonState(genericdaemon.Workload(daemon), genericdaemon.Validate(daemon), &daemon.Status.ChildrenStatus, writer)
	return r.Run(ctx, s, r.Build, r.Apply, r.Reread, observe, r.Report)
}

// reasonNoMatchingNodes means that no node has the label.
const reasonNoMatchingNodes = "NoMatchingNodes"

// observe sets the observed state of the DaemonSet of a Genericdaemon, and copies its counters.
func observe(_ context.Context, s *workload.State) (time.Duration, error) {
	daemon, live := s.Owner.(*mydomainv1beta1.Genericdaemon), s.Pods.Live.(*appsv1.DaemonSet)
	observed, into, label := &live.Status, &daemon.Status, daemon.Spec.Label
	into.Installed = observed.NumberReady
	into.Desired = observed.DesiredNumberScheduled
	into.Current = observed.CurrentNumberScheduled
	into.Updated = observed.UpdatedNumberScheduled
	into.Available = observed.NumberAvailable
	into.Misscheduled = observed.NumberMisscheduled
	s.Observed = workload.Observed{
		Kind: "DaemonSet", Progress: progress(live, label), Availability: availability(live, label), Workload: problems.OfDaemonSet(live),
	}
	return 0, nil
}

// progress reads the fields that "kubectl rollout status" reads.
func progress(live *appsv1.DaemonSet, label string) status.Readiness {
	observed := &live.Status
	desired := observed.DesiredNumberScheduled
	switch {
	case !status.IsObserved(live.Generation, observed.ObservedGeneration):
		return status.NewReconciling(status.ReasonProgressing, status.NotObservedYet("DaemonSet", live.Generation))
	case desired == 0 && observed.NumberMisscheduled == 0:
		return status.Readiness{Reason: reasonNoMatchingNodes, Message: noNodes(label)}
	case observed.UpdatedNumberScheduled < desired:
		return status.Progressing("%d of %d nodes run the current template", observed.UpdatedNumberScheduled, desired)
	case observed.NumberAvailable < desired:
		return status.NewReconciling(status.ReasonProgressing, availableOn(observed.NumberAvailable, desired))
	case observed.NumberMisscheduled > 0:
		return status.Progressing("%d pods run on nodes that no longer match", observed.NumberMisscheduled)
	}
	return status.NewReady(availableOn(observed.NumberAvailable, desired))
}

func noNodes(label string) string {
	if label == "" {
		return "the cluster has no node that the daemon may run on"
	}
	return fmt.Sprintf("no node that the daemon may run on has the label %q: label a node, or change spec.label", label)
}

// The reasons of the condition Available.
const (
	reasonAvailable   = "DaemonAvailable"
	reasonUnavailable = "DaemonUnavailable"
)

// availability is True if the daemon is available on every node that it should run on, of which
// there must be one at least: a label that no node has is most often a wrong one.
func availability(live *appsv1.DaemonSet, label string) metav1.Condition {
	desired, available := live.Status.DesiredNumberScheduled, live.Status.NumberAvailable
	switch {
	case live.Status.ObservedGeneration == 0:
		return status.NotObserved("DaemonSet", live.Generation)
	case desired == 0:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reasonNoMatchingNodes, Message: noNodes(label)}
	case available < desired:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reasonUnavailable, Message: availableOn(available, desired)}
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonAvailable, Message: availableOn(available, desired)}
}

func availableOn(available, desired int32) string {
	return fmt.Sprintf("the daemon is available on %d of %d nodes", available, desired)
}
