// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/decode"
	"github.com/modelbox-operator/modelbox-operator/controller/pack"
)

// indexTarget is the cache index of UnitedDeployments by their Deployment.
const indexTarget = "spec.deploymentName"

// targetOf is the Deployment that a UnitedDeployment holds. One that cannot be decoded
// holds none.
func targetOf(obj client.Object) []string {
	if decode.FailureOf(obj) != nil {
		return nil
	}
	return []string{pack.Open[*extensionv1.UnitedDeployment](obj).Spec.DeploymentName}
}

// watch watches UnitedDeployments and all that may hold, change or make their
// Deployments. A UnitedDeployment that comes, changes its target or goes is news
// to the others of both targets.
func (r *Reconciler) watch(mgr manager.Manager) *builder.Builder {
	return builder.ControllerManagedBy(mgr).
		Named("uniteddeployment").
		For(&extensionv1.UnitedDeployment{}, apply.Asked()).
		Watches(&extensionv1.UnitedDeployment{}, r.holdersOf(func(obj client.Object) string {
			return pack.Open[*extensionv1.UnitedDeployment](obj).Spec.DeploymentName
		}), apply.Asked()).
		Watches(&appsv1.Deployment{}, r.holdersOf(client.Object.GetName)).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, r.holdersOf(func(obj client.Object) string {
			return pack.Open[*autoscalingv2.HorizontalPodAutoscaler](obj).Spec.ScaleTargetRef.Name
		}), builder.WithPredicates(retargeted)).
		WithOptions(controller.Options{RateLimiter: apply.Backoff()})
}

// retargeted lets through an autoscaler that comes, goes or changes its target.
var retargeted = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := pack.Open[*autoscalingv2.HorizontalPodAutoscaler](e.ObjectOld), pack.Open[*autoscalingv2.HorizontalPodAutoscaler](e.ObjectNew)
	return was.Spec.ScaleTargetRef != is.Spec.ScaleTargetRef
}}

// holdersOf asks for a reconcile of every UnitedDeployment of the Deployment that
// an object is about.
func (r *Reconciler) holdersOf(deployment func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		list := &extensionv1.UnitedDeploymentList{}
		err := r.Client.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{indexTarget: deployment(obj)},
			client.DisableReadYourWritesConsistency)
		if err != nil {
			log.FromContext(ctx).Error(err, "listing UnitedDeployments of a Deployment", "deployment", deployment(obj))
			return nil
		}
		requests := make([]reconcile.Request, 0, len(list.Items))
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{
				Namespace: list.Items[i].Namespace, Name: list.Items[i].Name,
			}})
		}
		return requests
	})
}
