// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// Progress returns the readiness of the owner of a Deployment whose children have been
// applied. It is ready only if every pod runs the current template and is available, and
// no old pod is left: the fields that "kubectl rollout status" reads.
func Progress(deployment *appsv1.Deployment) status.Readiness {
	observed := &deployment.Status
	desired := ptr.Deref(deployment.Spec.Replicas, 1)
	if !isObserved(deployment) {
		return status.NewReconciling(status.ReasonProgressing, "the cluster has not acted on the last change of the Deployment yet")
	}
	if failure := failure(observed); failure != nil {
		return *failure
	}
	switch {
	case observed.UpdatedReplicas < desired:
		return status.Progressing("%d of %d pods run the current template", observed.UpdatedReplicas, desired)
	case observed.Replicas > observed.UpdatedReplicas:
		return status.Progressing("%d old pods of %d are still to be deleted", observed.Replicas-observed.UpdatedReplicas, observed.Replicas)
	case observed.AvailableReplicas < desired:
		return status.Progressing("%d of %d pods are available", observed.AvailableReplicas, desired)
	}
	return status.NewReady(fmt.Sprintf("%d of %d pods are available", observed.AvailableReplicas, desired))
}

// failure returns the readiness for a Deployment that cannot progress by itself, nil if it
// can, with the message of the Deployment's own condition.
func failure(observed *appsv1.DeploymentStatus) *status.Readiness {
	for _, condition := range observed.Conditions {
		var reason string
		switch {
		case condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue:
			reason = status.ReasonReplicaFailure
		case condition.Type == appsv1.DeploymentProgressing && condition.Reason == status.ReasonProgressDeadline:
			reason = status.ReasonProgressDeadline
		default:
			continue
		}
		readiness := status.NewStalled(reason, condition.Message)
		return &readiness
	}
	return nil
}

// setReplicas copies the counters of a Deployment.
func setReplicas(into *modelv1.WorkloadStatus, observed *appsv1.DeploymentStatus) {
	into.Replicas = observed.Replicas
	into.ReadyReplicas = observed.ReadyReplicas
	into.UpdatedReplicas = observed.UpdatedReplicas
	into.AvailableReplicas = observed.AvailableReplicas
	into.UnavailableReplicas = observed.UnavailableReplicas
	into.TerminatingReplicas = observed.TerminatingReplicas
	into.CollisionCount = observed.CollisionCount
}

// isObserved reports whether the status of a Deployment is one of its current spec.
func isObserved(deployment *appsv1.Deployment) bool {
	return status.IsObserved(deployment.Generation, deployment.Status.ObservedGeneration)
}

// availability returns the availability of the owner of a Deployment: the Deployment's own
// condition. That one has a minimum: all replicas but those that maxUnavailable allows.
func availability(observed *appsv1.DeploymentStatus) status.Availability {
	condition := conditionOf(observed, appsv1.DeploymentAvailable)
	if condition == nil || !slices.Contains(statuses, condition.Status) {
		return status.NotObserved("Deployment")
	}
	return status.Availability{
		Status:  metav1.ConditionStatus(condition.Status),
		Reason:  condition.Reason,
		Message: condition.Message,
		Since:   condition.LastTransitionTime,
	}
}

// statuses are those of a condition. The API server stores any in the status of a Deployment.
var statuses = []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}

// conditionOf returns a condition of a Deployment, nil if it does not have it.
func conditionOf(observed *appsv1.DeploymentStatus, conditionType appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range observed.Conditions {
		if observed.Conditions[i].Type == conditionType {
			return &observed.Conditions[i]
		}
	}
	return nil
}
