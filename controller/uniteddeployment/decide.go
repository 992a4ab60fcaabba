// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The reasons for which nothing is written.
const (
	reasonTargetNotFound = "TargetNotFound"
	reasonConflict       = "Conflict"
)

// decide returns the readiness of a UnitedDeployment for which nothing is to be written, nil
// if the Deployment is to be scaled: the replica count differs and nothing else holds it.
// errs are the errors of the spec. It is pure.
func decide(ud *extensionv1.UnitedDeployment, errs field.ErrorList, target *appsv1.Deployment, holder string) *status.Readiness {
	var readiness status.Readiness
	switch {
	case len(errs) > 0:
		readiness = status.NewStalled(status.ReasonInvalidSpec, rules.FormatErrors(errs))
	case target == nil:
		readiness = status.NewStalled(reasonTargetNotFound, fmt.Sprintf(
			"there is no Deployment %q in this namespace: create it, or change spec.deploymentName", ud.Spec.DeploymentName))
	case holder != "":
		readiness = status.NewStalled(reasonConflict, holder)
	case target.DeletionTimestamp != nil:
		readiness = status.NewReconciling(status.ReasonWaitingForDeletion, fmt.Sprintf("Deployment %q is being deleted", target.Name))
	case ptr.Deref(target.Spec.Replicas, 1) != *ud.Spec.Replicas:
		return nil
	default:
		readiness = progress(target)
	}
	return &readiness
}

// progress returns the readiness for a Deployment that has the desired replica count.
func progress(target *appsv1.Deployment) status.Readiness {
	readiness := workload.Scaled(target)
	if readiness.Ready {
		readiness.Message = fmt.Sprintf("Deployment %q is held at %d replicas", target.Name, ptr.Deref(target.Spec.Replicas, 1))
	}
	return readiness
}

// setReplicas copies the counters of a Deployment; they are 0 if it is missing.
func setReplicas(into *extensionv1.UnitedDeploymentStatus, target *appsv1.Deployment) {
	if target == nil {
		target = &appsv1.Deployment{}
	}
	into.Replicas = target.Status.Replicas
	into.ReadyReplicas = target.Status.ReadyReplicas
	into.AvailableReplicas = target.Status.AvailableReplicas
	into.Selector = selectorOf(target)
}

// selectorOf returns the selector of a Deployment as text, "" if it has none.
func selectorOf(target *appsv1.Deployment) string {
	if target.Spec.Selector == nil {
		return ""
	}
	return metav1.FormatLabelSelector(target.Spec.Selector)
}
