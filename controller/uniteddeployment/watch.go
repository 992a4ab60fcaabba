// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
)

// target indexes UnitedDeployments by their Deployment.
func target(reader client.Reader) trigger.Target[*extensionv1.UnitedDeployment] {
	return trigger.Target[*extensionv1.UnitedDeployment]{
		Client: reader,
		List:   func() client.ObjectList { return &extensionv1.UnitedDeploymentList{} },
		Name:   deploymentName,
	}
}

func deploymentName(ud *extensionv1.UnitedDeployment) string { return ud.Spec.DeploymentName }

// watch watches UnitedDeployments and everything that can hold or change their Deployments.
// A UnitedDeployment that is created, deleted or gets another target concerns the others
// of both targets.
func (r *Reconciler) watch(mgr manager.Manager) *builder.Builder {
	scaleTarget := func(hpa *autoscalingv2.HorizontalPodAutoscaler) autoscalingv2.CrossVersionObjectReference {
		return hpa.Spec.ScaleTargetRef
	}
	return builder.ControllerManagedBy(mgr).
		Named("uniteddeployment").
		For(&extensionv1.UnitedDeployment{}, trigger.SpecChanged()).
		Watches(&extensionv1.UnitedDeployment{}, trigger.Enqueue(&r.target, deploymentName), trigger.SpecChanged()).
		Watches(&appsv1.Deployment{}, r.target.EnqueueNamed()).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, trigger.Enqueue(&r.target, func(hpa *autoscalingv2.HorizontalPodAutoscaler) string {
			return scaleTarget(hpa).Name
		}), trigger.FieldChanged(scaleTarget)).
		WithOptions(controller.Options{RateLimiter: trigger.RateLimiter()})
}
