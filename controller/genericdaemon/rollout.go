// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/controller/rollout"
)

// observeRollout returns what a DaemonSet shows of its rollouts. conditions are those of the
// owner as they are stored. The API server increments the template generation with each change of
// the pod template. A node that joins the cluster has no pod at first, and so no old one.
func observeRollout(set *appsv1.DaemonSet, conditions []metav1.Condition) rollout.Observation {
	o := rollout.NewObservation(conditions)
	o.Child, o.Revision = set.UID, set.Annotations[appsv1.DeprecatedTemplateGeneration]
	if !isObserved(set) {
		return o
	}
	observed := &set.Status
	o.InProgress = observed.UpdatedNumberScheduled < observed.CurrentNumberScheduled
	o.Complete = observed.UpdatedNumberScheduled >= observed.DesiredNumberScheduled &&
		observed.NumberAvailable >= observed.DesiredNumberScheduled
	return o
}
