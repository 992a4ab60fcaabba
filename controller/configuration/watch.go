// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/controller/watches"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch

// New returns the sources of the objects of a controller, which Enqueue names.
func New(mgr manager.Manager, clk clock.PassiveClock) *Sources {
	s := &Sources{Metadata: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clk}
	starts := map[string]*watches.Start{}
	for _, kind := range []string{workload.KindConfigMap, workload.KindSecret} {
		watched := &metav1.PartialObjectMetadata{}
		watched.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		starts[kind] = &watches.Start{
			Clock: clk,
			Try: func(ctx context.Context) (ctrlcache.Informer, error) {
				if _, err := cache.Find(ctx, s.Live, mgr.GetCache(), watched.GroupVersionKind()); err != nil {
					return nil, err
				}
				return trigger.Synced(ctx, mgr.GetCache(), watched)
			},
			Then: func(informer ctrlcache.Informer) error {
				return s.controller.Watch(&source.Informer{Informer: informer, Handler: s.enqueue(kind), Predicates: []predicate.Predicate{predicate.ResourceVersionChangedPredicate{}}})
			},
		}
	}
	s.Watch = func(ctx context.Context, kind string) error { return starts[kind].Ensure(ctx) }
	return s
}

// Enqueue sets the controller that is to reconcile the owners of what changes, before the first one
// is observed.
func (s *Sources) Enqueue(c controller.Controller) { s.controller = c }

// enqueue enqueues the owners that refer to an object.
func (s *Sources) enqueue(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, owner := range s.ownersOf(kind, obj.GetNamespace(), obj.GetName()) {
			requests = append(requests, reconcile.Request{NamespacedName: owner})
		}
		return requests
	})
}
