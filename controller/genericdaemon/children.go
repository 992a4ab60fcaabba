// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/genericdaemon"
)

// Children returns the desired DaemonSet of a Genericdaemon that has its defaults and no
// errors. It is pure.
func Children(daemon *mydomainv1beta1.Genericdaemon) ([]client.Object, error) {
	set, err := daemonSet(daemon)
	if err != nil {
		return nil, err
	}
	return []client.Object{set}, nil
}

// desired returns the desired DaemonSet of a Genericdaemon that has its defaults. If the
// errors of its spec leave open what it has to be, it returns a *rules.InvalidSpecError,
// and a child without a desired state. It is pure.
func desired(daemon *mydomainv1beta1.Genericdaemon, errs field.ErrorList) (*workload.Children, error) {
	into := &daemon.Status
	children := &workload.Children{
		Owner: daemon, Paused: daemon.Spec.Paused, RestartOnChange: daemon.Spec.RestartOnChange, Windows: daemon.Spec.Windows, Pods: &apply.Child{Live: &appsv1.DaemonSet{}},
		ObservedGeneration: &into.ObservedGeneration, Conditions: &into.Conditions, Problems: &into.Problems,
	}
	children.Observe = func() workload.Observed {
		return observe(children.Pods.Live.(*appsv1.DaemonSet), daemon.Spec.Label, into)
	}
	if err := workload.Buildable(errs); err != nil {
		return children, err
	}
	set, err := daemonSet(daemon)
	if err != nil {
		return children, err
	}
	children.Pods.Desired = set
	return children, nil
}

// daemonSet returns the desired DaemonSet of a Genericdaemon that has its defaults.
func daemonSet(daemon *mydomainv1beta1.Genericdaemon) (*appsv1.DaemonSet, error) {
	pods := &workload.Workload{Owner: daemon, OwnerKind: kind, Pods: genericdaemon.Pods(daemon)}
	template, err := pods.Template()
	if err != nil {
		return nil, err
	}
	step := modelv1.IntOrPercent(*daemon.Spec.RollingUpdate)
	return &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "DaemonSet"},
		ObjectMeta: pods.ObjectMeta(),
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: pods.Selector()},
			Template: template,
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &step},
			},
		},
	}, nil
}

// reasonNoMatchingNodes means that no node has the label.
const reasonNoMatchingNodes = "NoMatchingNodes"

// observe returns the observed state of the DaemonSet of a Genericdaemon with a label, and copies its counters.
func observe(live *appsv1.DaemonSet, label string, into *mydomainv1beta1.GenericdaemonStatus) workload.Observed {
	observed := &live.Status
	into.Installed = observed.NumberReady
	into.Desired = observed.DesiredNumberScheduled
	into.Current = observed.CurrentNumberScheduled
	into.Updated = observed.UpdatedNumberScheduled
	into.Available = observed.NumberAvailable
	into.Misscheduled = observed.NumberMisscheduled
	return workload.Observed{
		Kind: "DaemonSet", Progress: progress(live, label), Availability: availability(live, label), Workload: problems.OfDaemonSet(live),
	}
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
		return status.Progressing("%d nodes run the daemon and should not", observed.NumberMisscheduled)
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
