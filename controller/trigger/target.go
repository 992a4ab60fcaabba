// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
)

// Target indexes the objects of a kind by the Deployment in their namespace that they act
// on. The handlers of this package enqueue them when an object that concerns this Deployment
// changes, and Oldest returns the one that takes precedence.
type Target[T client.Object] struct {
	// Client reads the index.
	Client client.Reader
	// List returns a new, empty list of the kind.
	List func() client.ObjectList
	// Name returns the name of the Deployment that an object of the kind acts on, "" if it
	// acts on none.
	Name func(T) string

	// bounds is nil without an index: Oldest then lists the objects in each call.
	bounds *bounds
}

// indexTarget is the name of the index.
const indexTarget = "spec.deploymentName"

// Index adds the index to a manager's cache. An object that cannot be decoded is not in it.
func (t *Target[T]) Index(ctx context.Context, indexer client.FieldIndexer) error {
	t.bounds = &bounds{}
	return indexer.IndexField(ctx, newObject[T](), indexTarget, func(obj client.Object) []string {
		name := t.nameOf(obj)
		if name == "" {
			return nil
		}
		t.bounds.offer(deploymentKey(obj, name), obj)
		return []string{name}
	})
}

// nameOf is Name for an object of the cache, "" for one that cannot be decoded.
func (t *Target[T]) nameOf(obj client.Object) string {
	if cache.DecodeErrorOf(obj) != nil {
		return ""
	}
	return t.Name(cache.Unpack[T](obj))
}

func newObject[T client.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}

// matching selects, in a List call, the objects that act on a Deployment.
func matching(deployment string) client.MatchingFields {
	return client.MatchingFields{indexTarget: deployment}
}

// list lists, from the cache, the objects that act on a Deployment. Callers read only what
// the controller does not write, so that the list need not contain its own writes yet.
func (t *Target[T]) list(ctx context.Context, namespace, deployment string, with ...client.ListOption) (client.ObjectList, error) {
	list := t.List()
	with = append(with, client.InNamespace(namespace), matching(deployment), client.DisableReadYourWritesConsistency)
	return list, t.Client.List(ctx, list, with...)
}

// isTarget reports whether any object acts on a Deployment. It reads one of them.
func (t *Target[T]) isTarget(ctx context.Context, namespace, deployment string) bool {
	list, err := t.list(ctx, namespace, deployment, client.Limit(1))
	return err != nil || meta.LenList(list) > 0 // The error is logged where all are listed.
}

// requests returns a request for each object that acts on a Deployment.
func (t *Target[T]) requests(ctx context.Context, namespace, deployment string) []reconcile.Request {
	list, err := t.list(ctx, namespace, deployment)
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
