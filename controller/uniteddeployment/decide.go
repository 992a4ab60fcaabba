// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
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
		readiness = workload.TargetNotFound(ud.Spec.DeploymentName)
	case holder != "":
		readiness = status.NewStalled(status.ReasonConflict, holder)
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

// holderOf returns the other controller that sets the replicas of ud's Deployment and what
// to do, "" if there is none. In this order: the ModelBox or App that is the controller
// of the Deployment, a HorizontalPodAutoscaler that scales it, an older UnitedDeployment.
// scaler and rival are the oldest of their kinds that act on the Deployment, nil if there is
// none; rival may be ud itself.
func holderOf(ud *extensionv1.UnitedDeployment, target *appsv1.Deployment, scaler *autoscalingv2.HorizontalPodAutoscaler, rival *extensionv1.UnitedDeployment) string {
	switch owner := holdingOwner(target); {
	case owner != "":
		return fmt.Sprintf("%s controls Deployment %q and sets its replicas; scale it instead", owner, ud.Spec.DeploymentName)
	case scaler != nil:
		return fmt.Sprintf("HorizontalPodAutoscaler %q scales Deployment %q; delete one of them", scaler.Name, ud.Spec.DeploymentName)
	case rival != nil && rival.UID != ud.UID && trigger.Older(rival, ud):
		return fmt.Sprintf("UnitedDeployment %q is older and scales Deployment %q; delete one of them", rival.Name, ud.Spec.DeploymentName)
	}
	return ""
}

func holdingOwner(target *appsv1.Deployment) string {
	owner := metav1.GetControllerOf(target)
	if owner == nil {
		return ""
	}
	switch schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group {
	case modelv1.GroupName, appv1.GroupName:
		return fmt.Sprintf("%s %q", owner.Kind, owner.Name)
	}
	return ""
}

// scaledDeployment returns the name of the Deployment that an autoscaler scales, "" if it
// scales something else.
func scaledDeployment(scaler *autoscalingv2.HorizontalPodAutoscaler) string {
	target := scaler.Spec.ScaleTargetRef
	if schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).GroupKind() != appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind() {
		return ""
	}
	return target.Name
}

// heldDeployment returns the name of the Deployment whose replicas a UnitedDeployment holds,
// "" if it is being deleted and holds none.
func heldDeployment(ud *extensionv1.UnitedDeployment) string {
	if ud.DeletionTimestamp != nil {
		return ""
	}
	return ud.Spec.DeploymentName
}
