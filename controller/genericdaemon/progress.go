// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// reasonNoMatchingNodes says that no node carries the label.
const reasonNoMatchingNodes = "NoMatchingNodes"

// progress says how far a DaemonSet's rollout is. It reads the fields that
// "kubectl rollout status" reads.
func progress(set *appsv1.DaemonSet, label string) *status.Verdict {
	verdict := rollout(set, label)
	return &verdict
}

func rollout(set *appsv1.DaemonSet, label string) status.Verdict {
	seen := &set.Status
	want := seen.DesiredNumberScheduled
	switch {
	case set.Generation == 0 || seen.ObservedGeneration < set.Generation:
		return underway("the cluster has not acted on the last change of the DaemonSet yet")
	case want == 0 && seen.NumberMisscheduled == 0:
		return status.Verdict{Reason: reasonNoMatchingNodes, Message: noNodes(label)}
	case seen.UpdatedNumberScheduled < want:
		return underway("%d of %d nodes run the current template", seen.UpdatedNumberScheduled, want)
	case seen.NumberAvailable < want:
		return underway("the daemon is available on %d of %d nodes", seen.NumberAvailable, want)
	case seen.NumberMisscheduled > 0:
		return underway("%d nodes run the daemon and should not", seen.NumberMisscheduled)
	}
	return status.Done(fmt.Sprintf("the daemon is available on %d of %d nodes", seen.NumberAvailable, want))
}

func noNodes(label string) string {
	if label == "" {
		return "the cluster has no node that the daemon may run on"
	}
	return fmt.Sprintf("no node that the daemon may run on carries the label %q: label a node, or change spec.label", label)
}

func underway(format string, args ...any) status.Verdict {
	return status.Underway(status.ReasonProgressing, fmt.Sprintf(format, args...))
}

// observe copies a DaemonSet's counters.
func observe(set *appsv1.DaemonSet, into *mydomainv1beta1.GenericdaemonStatus) {
	into.Installed = set.Status.NumberReady
	into.Desired = set.Status.DesiredNumberScheduled
	into.Current = set.Status.CurrentNumberScheduled
	into.Updated = set.Status.UpdatedNumberScheduled
	into.Available = set.Status.NumberAvailable
	into.Misscheduled = set.Status.NumberMisscheduled
}
