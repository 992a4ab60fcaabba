// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// Progress says how far a Deployment's rollout is. Ready is what was asked for
// and nothing else: every pod runs the current template and is available, and no
// old pod is left. It reads the fields that "kubectl rollout status" reads.
func Progress(deployment *appsv1.Deployment) status.Verdict {
	seen := &deployment.Status
	want := ptr.Deref(deployment.Spec.Replicas, 1)
	if seen.ObservedGeneration < deployment.Generation || deployment.Generation == 0 {
		return status.Underway(status.ReasonProgressing, "the cluster has not acted on the last change of the Deployment yet")
	}
	if verdict := failure(seen); verdict != nil {
		return *verdict
	}
	switch {
	case seen.UpdatedReplicas < want:
		return underway("%d of %d pods run the current template", seen.UpdatedReplicas, want)
	case seen.Replicas > seen.UpdatedReplicas:
		return underway("%d old pods of %d are still to go", seen.Replicas-seen.UpdatedReplicas, seen.Replicas)
	case seen.AvailableReplicas < want:
		return underway("%d of %d pods are available", seen.AvailableReplicas, want)
	}
	return status.Done(fmt.Sprintf("%d of %d pods are available", seen.AvailableReplicas, want))
}

// failure is the verdict on a Deployment that cannot go on by itself, in the
// words of the controllers that know why.
func failure(seen *appsv1.DeploymentStatus) *status.Verdict {
	for _, condition := range seen.Conditions {
		var reason string
		switch {
		case condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue:
			reason = status.ReasonReplicaFailure
		case condition.Type == appsv1.DeploymentProgressing && condition.Reason == status.ReasonProgressDeadline:
			reason = status.ReasonProgressDeadline
		default:
			continue
		}
		verdict := status.Stuck(reason, condition.Message)
		return &verdict
	}
	return nil
}

func underway(format string, args ...any) status.Verdict {
	return status.Underway(status.ReasonProgressing, fmt.Sprintf(format, args...))
}

// observe copies a Deployment's counters.
func observe(deployment *appsv1.Deployment, into *modelv1.WorkloadStatus) {
	into.Replicas = deployment.Status.Replicas
	into.ReadyReplicas = deployment.Status.ReadyReplicas
	into.UpdatedReplicas = deployment.Status.UpdatedReplicas
	into.AvailableReplicas = deployment.Status.AvailableReplicas
	into.UnavailableReplicas = deployment.Status.UnavailableReplicas
}
