// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
)

// unitedDeployments indexes UnitedDeployments by their Deployment.
func unitedDeployments(reader client.Reader) trigger.Target[*extensionv1.UnitedDeployment] {
	return trigger.Target[*extensionv1.UnitedDeployment]{
		Client: reader,
		List:   func() client.ObjectList { return &extensionv1.UnitedDeploymentList{} },
		Name:   heldDeployment,
	}
}

// autoscalers indexes HorizontalPodAutoscalers by the Deployment that they scale.
func autoscalers(reader client.Reader) trigger.Target[*autoscalingv2.HorizontalPodAutoscaler] {
	return trigger.Target[*autoscalingv2.HorizontalPodAutoscaler]{
		Client: reader,
		List:   func() client.ObjectList { return &autoscalingv2.HorizontalPodAutoscalerList{} },
		Name:   scaledDeployment,
	}
}

// watch watches UnitedDeployments and everything that can hold or change their Deployments.
// A UnitedDeployment or an autoscaler that is created, deleted or gets another target
// concerns the UnitedDeployments of both targets.
func (r *Reconciler) watch(mgr manager.Manager) *builder.Builder {
	return builder.ControllerManagedBy(mgr).
		Named("uniteddeployment").
		For(&extensionv1.UnitedDeployment{}, trigger.Changed()).
		Watches(&extensionv1.UnitedDeployment{}, trigger.EnqueueRivals(&r.rivals, &r.rivals), r.rivals.Retargeted()).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, trigger.EnqueueRivals(&r.rivals, &r.autoscalers), r.autoscalers.Retargeted()).
		Watches(&appsv1.Deployment{}, r.rivals.EnqueueNamed(), trigger.Changed()).
		WithOptions(trigger.Options())
}
