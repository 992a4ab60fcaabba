// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
)

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
	if target == nil {
		return ""
	}
	owner := metav1.GetControllerOf(target)
	if owner == nil {
		return ""
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || version.Group != modelv1.GroupName && version.Group != appv1.GroupName {
		return ""
	}
	return fmt.Sprintf("%s %q", owner.Kind, owner.Name)
}

// scaledDeployment returns the name of the Deployment that an autoscaler scales, "" if it
// scales something else.
func scaledDeployment(scaler *autoscalingv2.HorizontalPodAutoscaler) string {
	target := scaler.Spec.ScaleTargetRef
	version, err := schema.ParseGroupVersion(target.APIVersion)
	if err != nil || version.Group != appsv1.GroupName || target.Kind != "Deployment" {
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
