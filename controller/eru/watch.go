// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"cmp"
	"context"

	appsv1 "k8s.io/api/apps/v1"
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

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/decode"
	"github.com/modelbox-operator/modelbox-operator/controller/pack"
)

// indexTarget is the cache index of Erus by their Deployment.
const indexTarget = "spec.deploymentName"

// targetOf is the Deployment of an Eru, which is called as the Eru if spec does not
// say. One that cannot be decoded has none that is known.
func targetOf(obj client.Object) []string {
	if decode.FailureOf(obj) != nil {
		return nil
	}
	return []string{cmp.Or(pack.Open[*mtsrev1.Eru](obj).Spec.DeploymentName, obj.GetName())}
}

// watch watches Erus and their Deployments. A Deployment wakes its Erus with every
// change but a restart that was written here: that is how the end of a rollout is seen.
func (r *Reconciler) watch(mgr manager.Manager) *builder.Builder {
	return builder.ControllerManagedBy(mgr).
		Named("eru").
		For(&mtsrev1.Eru{}, apply.Asked()).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(r.erusOf),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: r.news})).
		WithOptions(controller.Options{RateLimiter: apply.Backoff()})
}

// news says whether a Deployment has become something that its Erus don't know yet.
func (r *Reconciler) news(e event.UpdateEvent) bool {
	return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() && !r.Fresh.Take(e.ObjectNew)
}

// erusOf asks for a reconcile of each Eru of a Deployment.
func (r *Reconciler) erusOf(ctx context.Context, deployment client.Object) []reconcile.Request {
	list := &mtsrev1.EruList{}
	err := r.Client.List(ctx, list, client.InNamespace(deployment.GetNamespace()),
		client.MatchingFields{indexTarget: deployment.GetName()}, client.DisableReadYourWritesConsistency)
	if err != nil {
		log.FromContext(ctx).Error(err, "listing Erus of a Deployment", "deployment", deployment.GetName())
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{
			Namespace: list.Items[i].Namespace, Name: list.Items[i].Name,
		}})
	}
	return requests
}
