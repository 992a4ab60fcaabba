// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// Observe sets the observed state of the Deployment, and copies its counters, and the address of
// the Service, to the status of the owner.
func (*Reconciler) Observe(_ context.Context, s *State) (time.Duration, error) {
	live, into := s.Pods.Live.(*appsv1.Deployment), s.WorkloadStatus
	observed := &live.Status
	into.Replicas = observed.Replicas
	into.ReadyReplicas = observed.ReadyReplicas
	into.UpdatedReplicas = observed.UpdatedReplicas
	into.AvailableReplicas = observed.AvailableReplicas
	into.UnavailableReplicas = observed.UnavailableReplicas
	into.TerminatingReplicas = observed.TerminatingReplicas
	into.CollisionCount = observed.CollisionCount
	into.Selector = s.Selector().String()
	into.Address = ""
	if s.Service.Exists() {
		into.Address = s.Address()
	}
	s.optional.status(into)
	s.Observed = Observed{Kind: "Deployment", Progress: unpaused(live), Availability: availability(live), Workload: problems.OfDeployment(live)}
	return 0, nil
}

// reasonDeploymentPaused means that the rollouts of the Deployment are paused.
const reasonDeploymentPaused = "DeploymentPaused"

// unpaused is Progress, unless the Deployment is paused ("kubectl rollout pause"). The operator
// does not resume it: a user has paused it on purpose.
func unpaused(live *appsv1.Deployment) status.Readiness {
	if live.Spec.Paused {
		return status.Readiness{Reason: reasonDeploymentPaused, Message: fmt.Sprintf(
			"Deployment %q is paused, so its pods do not get a changed template: kubectl rollout resume deployment/%s -n %s",
			live.Name, live.Name, live.Namespace)}
	}
	return Progress(live)
}

// Progress returns the readiness of the owner of a Deployment whose children have been
// applied. It is ready only if every pod runs the current template and is available, and
// no other pod is left: the fields that "kubectl rollout status" reads.
func Progress(deployment *appsv1.Deployment) status.Readiness {
	observed, scaled := &deployment.Status, Scaled(deployment)
	desired := ptr.Deref(deployment.Spec.Replicas, 1)
	if !isObserved(deployment) {
		return scaled
	}
	if failure := failure(observed); failure != nil {
		return *failure
	}
	switch {
	case observed.UpdatedReplicas < desired:
		return status.Progressing("%d of %d pods run the current template", observed.UpdatedReplicas, desired)
	case observed.Replicas > observed.UpdatedReplicas:
		return status.Progressing("waiting for the deletion of %d of %d pods, which run an old template",
			observed.Replicas-observed.UpdatedReplicas, observed.Replicas)
	}
	return scaled
}

// Scaled returns the readiness of a Deployment by the number of its pods, whatever template they
// run.
func Scaled(deployment *appsv1.Deployment) status.Readiness {
	observed, desired := &deployment.Status, ptr.Deref(deployment.Spec.Replicas, 1)
	switch {
	case !isObserved(deployment):
		return status.NewReconciling(status.ReasonProgressing, status.NotObservedYet("Deployment", deployment.Generation))
	case observed.Replicas > desired:
		return status.Progressing("waiting for the deletion of %d of %d pods", observed.Replicas-desired, observed.Replicas)
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

// isObserved reports whether the status of a Deployment is one of its current spec.
func isObserved(deployment *appsv1.Deployment) bool {
	return status.IsObserved(deployment.Generation, deployment.Status.ObservedGeneration)
}

// availability returns the availability of the owner of a Deployment: the Deployment's own
// condition. That one has a minimum: all replicas but those that maxUnavailable allows.
func availability(deployment *appsv1.Deployment) metav1.Condition {
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable {
			return metav1.Condition{
				Status:             metav1.ConditionStatus(condition.Status),
				Reason:             condition.Reason,
				Message:            condition.Message,
				LastTransitionTime: condition.LastTransitionTime,
			}
		}
	}
	return status.NotObserved("Deployment", deployment.Generation)
}
