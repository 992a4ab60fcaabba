// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// holderOf returns the other controller that sets the replicas of ud's Deployment and what
// to do, "" if there is none. In this order: the ModelBox or App that is the controller
// of the Deployment, a HorizontalPodAutoscaler that scales it, an older UnitedDeployment.
// target may be nil; scalers and rivals are those of the namespace.
func holderOf(ud *extensionv1.UnitedDeployment, target *appsv1.Deployment, scalers []autoscalingv2.HorizontalPodAutoscaler, rivals []extensionv1.UnitedDeployment) string {
	if owner := holdingOwner(target); owner != "" {
		return fmt.Sprintf("%s controls Deployment %q and sets its replicas; scale it instead", owner, ud.Spec.DeploymentName)
	}
	for i := range scalers {
		if scales(&scalers[i], ud.Spec.DeploymentName) {
			return fmt.Sprintf("HorizontalPodAutoscaler %q scales Deployment %q; delete one of them", scalers[i].Name, ud.Spec.DeploymentName)
		}
	}
	if older := oldest(ud, rivals); older != ud {
		return fmt.Sprintf("UnitedDeployment %q is older and scales Deployment %q; delete one of them", older.Name, ud.Spec.DeploymentName)
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

func scales(scaler *autoscalingv2.HorizontalPodAutoscaler, deployment string) bool {
	target := scaler.Spec.ScaleTargetRef
	version, err := schema.ParseGroupVersion(target.APIVersion)
	return err == nil && version.Group == appsv1.GroupName && target.Kind == "Deployment" && target.Name == deployment
}

// oldest returns the UnitedDeployment that scales the Deployment: the one that was
// created first, and of those with the same creationTimestamp the one with the smallest
// uid. An object that is not stored yet is the youngest.
func oldest(ud *extensionv1.UnitedDeployment, rivals []extensionv1.UnitedDeployment) *extensionv1.UnitedDeployment {
	first := ud
	for i := range rivals {
		rival := &rivals[i]
		if rival.UID == ud.UID || rival.Spec.DeploymentName != ud.Spec.DeploymentName || rival.DeletionTimestamp != nil {
			continue
		}
		if first.CreationTimestamp.IsZero() || older(rival, first) {
			first = rival
		}
	}
	return first
}

func older(a, b *extensionv1.UnitedDeployment) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) < 0
}
