// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// reasonNoMatchingNodes means that no node has the label.
const reasonNoMatchingNodes = "NoMatchingNodes"

// observer reads the DaemonSet of a Genericdaemon.
type observer struct {
	pods *apply.Child
	// label is spec.label.
	label string
	into  *mydomainv1beta1.GenericdaemonStatus
}

// live returns the DaemonSet. An apply replaces it.
func (o *observer) live() *appsv1.DaemonSet { return o.pods.Live.(*appsv1.DaemonSet) }

func (o *observer) Kind() string { return "DaemonSet" }

func (o *observer) Workload() problems.Workload { return problems.OfDaemonSet(o.live()) }

// Progress reads the fields that "kubectl rollout status" reads.
func (o *observer) Progress() status.Readiness {
	live := o.live()
	observed := &live.Status
	desired := observed.DesiredNumberScheduled
	switch {
	case !status.IsObserved(live.Generation, observed.ObservedGeneration):
		return status.NewReconciling(status.ReasonProgressing, status.NotObservedYet("DaemonSet", live.Generation))
	case desired == 0 && observed.NumberMisscheduled == 0:
		return status.Readiness{Reason: reasonNoMatchingNodes, Message: noNodes(o.label)}
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

// Availability is True if the daemon is available on every node that it should run on, of which
// there must be one at least: a label that no node has is most often a wrong one.
func (o *observer) Availability() status.Availability {
	live := o.live()
	desired, available := live.Status.DesiredNumberScheduled, live.Status.NumberAvailable
	switch {
	case live.Status.ObservedGeneration == 0:
		return status.NotObserved("DaemonSet", live.Generation)
	case desired == 0:
		return status.Availability{Status: metav1.ConditionFalse, Reason: reasonNoMatchingNodes, Message: noNodes(o.label)}
	case available < desired:
		return status.Availability{Status: metav1.ConditionFalse, Reason: reasonUnavailable, Message: availableOn(available, desired)}
	}
	return status.Availability{Status: metav1.ConditionTrue, Reason: reasonAvailable, Message: availableOn(available, desired)}
}

func availableOn(available, desired int32) string {
	return fmt.Sprintf("the daemon is available on %d of %d nodes", available, desired)
}

// SetCounters copies the counters of the DaemonSet.
func (o *observer) SetCounters() {
	into, observed := o.into, &o.live().Status
	into.Installed = observed.NumberReady
	into.Desired = observed.DesiredNumberScheduled
	into.Current = observed.CurrentNumberScheduled
	into.Updated = observed.UpdatedNumberScheduled
	into.Available = observed.NumberAvailable
	into.Misscheduled = observed.NumberMisscheduled
}
