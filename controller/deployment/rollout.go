// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/controller/rollout"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// annotationRevision is the number of the pod template that the Deployment controller has acted
// on. It increments with each template, and stays when the Deployment is scaled.
const annotationRevision = "deployment.kubernetes.io/revision"

// The reasons of the Deployment's condition Progressing, as the Deployment controller sets them
// (pkg/controller/deployment/util/deployment_util.go in k8s.io/kubernetes).
const (
	newReplicaSetCreated   = "NewReplicaSetCreated"
	replicaSetUpdated      = "ReplicaSetUpdated"
	newReplicaSetAvailable = "NewReplicaSetAvailable"
)

// observeRollout returns what a Deployment shows of its rollouts. conditions are those of the
// owner as they are stored.
func observeRollout(deployment *appsv1.Deployment, complete bool, conditions []metav1.Condition) rollout.Observation {
	o := rollout.NewObservation(conditions)
	o.Child, o.Revision, o.Complete = deployment.UID, deployment.Annotations[annotationRevision], complete
	if !isObserved(deployment) {
		return o
	}
	observed := &deployment.Status
	o.InProgress = !complete && observed.UpdatedReplicas < observed.Replicas
	progressing := conditionOf(observed, appsv1.DeploymentProgressing)
	if progressing == nil {
		return o
	}
	switch progressing.Reason {
	case newReplicaSetCreated, replicaSetUpdated, status.ReasonProgressDeadline:
		o.InProgress = !complete
	case newReplicaSetAvailable:
		o.CompletedAt = progressing.LastUpdateTime.Time
	}
	return o
}
