// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"
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
// concerns the UnitedDeployments of both targets if it is or was the one that they yield to.
func (r *Reconciler) watch(mgr manager.Manager) *builder.Builder {
	return builder.ControllerManagedBy(mgr).
		Named("uniteddeployment").
		For(&extensionv1.UnitedDeployment{}, trigger.SpecChanged()).
		Watches(&extensionv1.UnitedDeployment{}, trigger.EnqueueSuccession(&r.rivals, &r.rivals), trigger.SpecChanged()).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, trigger.EnqueueSuccession(&r.rivals, &r.autoscalers)).
		Watches(&appsv1.Deployment{}, trigger.EnqueueNamedOnChange(&r.rivals, observedOf)).
		WithOptions(trigger.Options())
}

// observed is what a reconcile reads of a Deployment, but for its resourceVersion: a write
// that is refused because of an outdated one is retried. An update that changes none of it,
// such as an annotation, is no reason to reconcile.
type observed struct {
	deleting, pending       bool // pending: the cluster has not acted on the last change yet.
	desired                 int32
	total, ready, available int32
	owner, selector         string
}

func observedOf(target *appsv1.Deployment) observed {
	return observed{
		deleting:  target.DeletionTimestamp != nil,
		pending:   target.Status.ObservedGeneration < target.Generation,
		desired:   ptr.Deref(target.Spec.Replicas, 1),
		total:     target.Status.Replicas,
		ready:     target.Status.ReadyReplicas,
		available: target.Status.AvailableReplicas,
		owner:     holdingOwner(target),
		selector:  selectorOf(target),
	}
}
