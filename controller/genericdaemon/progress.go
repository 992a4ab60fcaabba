// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// reasonNoMatchingNodes means that no node has the label.
const reasonNoMatchingNodes = "NoMatchingNodes"

// progress returns the readiness of a Genericdaemon whose DaemonSet has been applied, from
// the fields that "kubectl rollout status" reads.
func progress(set *appsv1.DaemonSet, label string) status.Readiness {
	observed := &set.Status
	desired := observed.DesiredNumberScheduled
	switch {
	case !isObserved(set):
		return status.Progressing("the cluster has not acted on the last change of the DaemonSet yet")
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

// isObserved reports whether the status of a DaemonSet is one of its current spec.
func isObserved(set *appsv1.DaemonSet) bool {
	return status.IsObserved(set.Generation, set.Status.ObservedGeneration)
}

// The reasons of the condition Available.
const (
	reasonAvailable   = "DaemonAvailable"
	reasonUnavailable = "DaemonUnavailable"
)

// availability returns the availability of a Genericdaemon: True if the daemon is available on
// every node that it should run on, of which there must be one at least: a label that no node
// has is most often a wrong one. readiness says why there is no DaemonSet.
func availability(exists bool, observed *appsv1.DaemonSetStatus, label string, readiness status.Readiness) status.Availability {
	desired, available := observed.DesiredNumberScheduled, observed.NumberAvailable
	switch {
	case !exists:
		return status.NoChild("DaemonSet", readiness)
	case observed.ObservedGeneration == 0:
		return status.NotObserved("DaemonSet")
	case desired == 0:
		return status.Availability{Status: metav1.ConditionFalse, Reason: reasonNoMatchingNodes, Message: noNodes(label)}
	case available < desired:
		return status.Availability{Status: metav1.ConditionFalse, Reason: reasonUnavailable, Message: availableOn(available, desired)}
	}
	return status.Availability{Status: metav1.ConditionTrue, Reason: reasonAvailable, Message: availableOn(available, desired)}
}

func availableOn(available, desired int32) string {
	return fmt.Sprintf("the daemon is available on %d of %d nodes", available, desired)
}

// setNodes copies the counters of a DaemonSet.
func setNodes(into *mydomainv1beta1.GenericdaemonStatus, observed *appsv1.DaemonSetStatus) {
	into.Installed = observed.NumberReady
	into.Desired = observed.DesiredNumberScheduled
	into.Current = observed.CurrentNumberScheduled
	into.Updated = observed.UpdatedNumberScheduled
	into.Available = observed.NumberAvailable
	into.Misscheduled = observed.NumberMisscheduled
}
