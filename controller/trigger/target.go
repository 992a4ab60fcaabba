// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
)

// Target indexes the objects of a kind by the Deployment in their namespace that they act
// on, and enqueues them when an object that concerns this Deployment changes.
type Target[T client.Object] struct {
	// Client reads the index.
	Client client.Reader
	// List returns a new, empty list of the kind.
	List func() client.ObjectList
	// Name returns the name of the Deployment that an object of the kind acts on.
	Name func(T) string
}

// indexTarget is the name of the index.
const indexTarget = "spec.deploymentName"

// Index adds the index to a manager's cache. An object that cannot be decoded is not in it.
func (t *Target[T]) Index(ctx context.Context, indexer client.FieldIndexer) error {
	obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	return indexer.IndexField(ctx, obj, indexTarget, func(obj client.Object) []string {
		if cache.DecodeErrorOf(obj) != nil {
			return nil
		}
		return []string{t.Name(cache.Unpack[T](obj))}
	})
}

// Matching selects, in a List call, the objects that act on a Deployment.
func (t *Target[T]) Matching(deployment string) client.MatchingFields {
	return client.MatchingFields{indexTarget: deployment}
}

// Enqueue returns a handler that enqueues every object which acts on the Deployment that
// nameOf returns for the watched object.
func Enqueue[T, O client.Object](t *Target[T], nameOf func(O) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		return t.requests(ctx, obj.GetNamespace(), nameOf(cache.Unpack[O](obj)))
	})
}

// EnqueueNamed is Enqueue for watched objects that have the name of the Deployment.
func (t *Target[T]) EnqueueNamed() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		return t.requests(ctx, obj.GetNamespace(), obj.GetName())
	})
}

func (t *Target[T]) requests(ctx context.Context, namespace, deployment string) []reconcile.Request {
	list := t.List()
	err := t.Client.List(ctx, list, client.InNamespace(namespace), t.Matching(deployment), client.DisableReadYourWritesConsistency)
	if err != nil {
		log.FromContext(ctx).Error(err, "Listing the objects that act on a Deployment", "deployment", deployment)
		return nil
	}
	var requests []reconcile.Request
	_ = meta.EachListItem(list, func(item runtime.Object) error { // It fails only for what is no list.
		obj := item.(client.Object)
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
		return nil
	})
	return requests
}
