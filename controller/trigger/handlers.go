// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
)

// EnqueueSameName enqueues the object that has the name of the watched one: children have
// the name of their owner. It does not need an owner reference, so that an object which
// belongs to another owner and prevents the creation of a child is seen when it is created
// and when it is deleted.
func EnqueueSameName() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}}
	})
}

// EnqueueNamed enqueues every object that acts on the watched Deployment.
func (t *Target[T]) EnqueueNamed() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		return t.requests(ctx, obj.GetNamespace(), obj.GetName())
	})
}

// EnqueueNamedOnChange is EnqueueNamed for a kind that reads only a part of the Deployment:
// an update that leaves what read returns as it is enqueues nothing. Most Deployments have
// no object that acts on them, and are not decoded.
func EnqueueNamedOnChange[T, O client.Object, V comparable](t *Target[T], read func(O) V) handler.EventHandler {
	named := t.EnqueueNamed()
	return handler.Funcs{
		CreateFunc: named.Create,
		DeleteFunc: named.Delete,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			obj := e.ObjectNew
			if t.isTarget(ctx, obj.GetNamespace(), obj.GetName()) &&
				(e.ObjectOld.GetUID() != obj.GetUID() || read(cache.Unpack[O](e.ObjectOld)) != read(cache.Unpack[O](obj))) {
				t.enqueue(ctx, q, obj.GetNamespace(), obj.GetName())
			}
		},
	}
}

// EnqueueSuccession enqueues the objects that act on a Deployment when another one of rivals
// becomes the oldest that acts on it. An object that is neither the oldest nor was it
// changes nothing for the others, however often it is created or deleted. t and rivals may
// be the same.
func EnqueueSuccession[T, R client.Object](t *Target[T], rivals *Target[R]) handler.EventHandler {
	enqueue := func(ctx context.Context, obj client.Object, q queue) {
		if deployment := rivals.nameOf(obj); deployment != "" && rivals.isOrWasOldest(ctx, obj, deployment) {
			t.enqueue(ctx, q, obj.GetNamespace(), deployment)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if rivals.nameOf(e.ObjectOld) != rivals.nameOf(e.ObjectNew) || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				enqueue(ctx, e.ObjectOld, q)
				enqueue(ctx, e.ObjectNew, q)
			}
		},
	}
}

// isOrWasOldest reports whether no object that acts on a Deployment is older than obj, which
// acts on it or has acted on it until now.
func (t *Target[T]) isOrWasOldest(ctx context.Context, obj client.Object, deployment string) bool {
	first, found, err := t.Oldest(ctx, obj.GetNamespace(), deployment)
	if err != nil {
		log.FromContext(ctx).Error(err, "Reading the oldest object that acts on a Deployment", "deployment", deployment)
	}
	return err != nil || !found || !Older(first, obj)
}

func (t *Target[T]) enqueue(ctx context.Context, q queue, namespace, deployment string) {
	for _, request := range t.requests(ctx, namespace, deployment) {
		q.Add(request)
	}
}
