// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

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
	case set.Generation == 0 || observed.ObservedGeneration < set.Generation:
		return status.Progressing("the cluster has not acted on the last change of the DaemonSet yet")
	case desired == 0 && observed.NumberMisscheduled == 0:
		return status.Readiness{Reason: reasonNoMatchingNodes, Message: noNodes(label)}
	case observed.UpdatedNumberScheduled < desired:
		return status.Progressing("%d of %d nodes run the current template", observed.UpdatedNumberScheduled, desired)
	case observed.NumberAvailable < desired:
		return status.Progressing("the daemon is available on %d of %d nodes", observed.NumberAvailable, desired)
	case observed.NumberMisscheduled > 0:
		return status.Progressing("%d nodes run the daemon and should not", observed.NumberMisscheduled)
	}
	return status.NewReady(fmt.Sprintf("the daemon is available on %d of %d nodes", observed.NumberAvailable, desired))
}

func noNodes(label string) string {
	if label == "" {
		return "the cluster has no node that the daemon may run on"
	}
	return fmt.Sprintf("no node that the daemon may run on has the label %q: label a node, or change spec.label", label)
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
