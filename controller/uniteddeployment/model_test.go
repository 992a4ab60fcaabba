// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
)

// modelHolder is the definition of what holds the replica count of a Deployment, written as
// simply as possible: it compares a UnitedDeployment with all objects of the namespace. It
// costs too much for the controller, because each of n rivals would read all n.
func modelHolder(ud *extensionv1.UnitedDeployment, target *appsv1.Deployment, scalers []autoscalingv2.HorizontalPodAutoscaler, rivals []extensionv1.UnitedDeployment) string {
	if owner := holdingOwner(target); owner != "" {
		return fmt.Sprintf("%s controls Deployment %q and sets its replicas; scale it instead", owner, ud.Spec.DeploymentName)
	}
	var scaler *autoscalingv2.HorizontalPodAutoscaler
	for i := range scalers {
		if modelScales(&scalers[i], ud.Spec.DeploymentName) && (scaler == nil || modelOlderScaler(&scalers[i], scaler)) {
			scaler = &scalers[i]
		}
	}
	if scaler != nil {
		return fmt.Sprintf("HorizontalPodAutoscaler %q scales Deployment %q; delete one of them", scaler.Name, ud.Spec.DeploymentName)
	}
	if older := modelOldest(ud, rivals); older != ud {
		return fmt.Sprintf("UnitedDeployment %q is older and scales Deployment %q; delete one of them", older.Name, ud.Spec.DeploymentName)
	}
	return ""
}

func modelScales(scaler *autoscalingv2.HorizontalPodAutoscaler, deployment string) bool {
	target := scaler.Spec.ScaleTargetRef
	version, err := schema.ParseGroupVersion(target.APIVersion)
	return err == nil && version.Group == appsv1.GroupName && target.Kind == "Deployment" && target.Name == deployment
}

// modelOldest returns the UnitedDeployment that scales the Deployment: the one that was
// created first, and of those with the same creationTimestamp the one with the smallest
// uid. An object that is not stored yet is the youngest.
func modelOldest(ud *extensionv1.UnitedDeployment, rivals []extensionv1.UnitedDeployment) *extensionv1.UnitedDeployment {
	first := ud
	for i := range rivals {
		rival := &rivals[i]
		if rival.UID == ud.UID || rival.Spec.DeploymentName != ud.Spec.DeploymentName || rival.DeletionTimestamp != nil {
			continue
		}
		if first.CreationTimestamp.IsZero() || modelOlder(rival, first) {
			first = rival
		}
	}
	return first
}

func modelOlder(a, b *extensionv1.UnitedDeployment) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) < 0
}

func modelOlderScaler(a, b *autoscalingv2.HorizontalPodAutoscaler) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) < 0
}
