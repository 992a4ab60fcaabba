// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// The reasons for which nothing is written.
const (
	reasonTargetNotFound = "TargetNotFound"
	reasonConflict       = "Conflict"
)

// decide is the verdict on a UnitedDeployment that is not to write, nil for one
// that is: the count differs and nobody else holds it.
func decide(ud *extensionv1.UnitedDeployment, target *appsv1.Deployment, holder string) *status.Verdict {
	want := *ud.Spec.Replicas
	var verdict status.Verdict
	switch {
	case target == nil:
		verdict = status.Stuck(reasonTargetNotFound, fmt.Sprintf(
			"there is no Deployment %q in this namespace: create it, or change spec.deploymentName", ud.Spec.DeploymentName))
	case holder != "":
		verdict = status.Stuck(reasonConflict, holder)
	case target.DeletionTimestamp != nil:
		verdict = status.Underway(status.ReasonWaitingForDeletion, fmt.Sprintf("Deployment %q is being deleted", target.Name))
	case ptr.Deref(target.Spec.Replicas, 1) != want:
		return nil
	case target.Status.ObservedGeneration < target.Generation:
		verdict = underway("the cluster has not acted on the last change of the Deployment yet")
	case target.Status.Replicas > want:
		verdict = underway("%d pods of %d are still to go", target.Status.Replicas-want, target.Status.Replicas)
	case target.Status.AvailableReplicas < want:
		verdict = underway("%d of %d pods are available", target.Status.AvailableReplicas, want)
	default:
		verdict = status.Done(fmt.Sprintf("Deployment %q is held at %d replicas", target.Name, want))
	}
	return &verdict
}

func underway(format string, args ...any) status.Verdict {
	return status.Underway(status.ReasonProgressing, fmt.Sprintf(format, args...))
}

// observe copies a Deployment's counters; a missing one counts nothing.
func observe(target *appsv1.Deployment, into *extensionv1.UnitedDeploymentStatus) {
	if target == nil {
		target = &appsv1.Deployment{}
	}
	into.Replicas = target.Status.Replicas
	into.ReadyReplicas = target.Status.ReadyReplicas
	into.AvailableReplicas = target.Status.AvailableReplicas
	into.Selector = ""
	if target.Spec.Selector != nil {
		into.Selector = metav1.FormatLabelSelector(target.Spec.Selector)
	}
}
