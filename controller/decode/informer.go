// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// NewInformer makes the informers of a cache (cache.Options.NewInformer).
type NewInformer func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer

// Informers makes informers, of which those of custom resources list and watch with
// this package's decoder. All else is as the cache does it.
func Informers(config *rest.Config, client *http.Client, scheme *runtime.Scheme, mapper meta.RESTMapper) NewInformer {
	return func(lw cache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		kind, ok := customKind(scheme, obj)
		if !ok {
			return cache.NewSharedIndexInformer(lw, obj, resync, indexers)
		}
		r := requests{config: configFor(config, scheme, kind), client: client, mapper: mapper, kind: kind,
			parameters: runtime.NewParameterCodec(scheme), list: listType(scheme, kind)}
		indexers = maps.Clone(indexers)
		indexers[index] = indexMarked
		informer := cache.NewSharedIndexInformer(&cache.ListWatch{ListWithContextFunc: r.List, WatchFuncWithContext: r.Watch}, obj, resync, indexers)
		undecodable.caches.Store(kind.Kind, informer.GetIndexer())
		return informer
	}
}

// customKind is the kind of a custom resource: of one that is not Kubernetes' own.
func customKind(scheme *runtime.Scheme, obj runtime.Object) (schema.GroupVersionKind, bool) {
	kinds, _, err := scheme.ObjectKinds(obj)
	if err != nil || clientgoscheme.Scheme.Recognizes(kinds[0]) {
		return schema.GroupVersionKind{}, false
	}
	return kinds[0], true
}

// listType is the Go type of a kind's lists.
func listType(scheme *runtime.Scheme, kind schema.GroupVersionKind) reflect.Type {
	return scheme.AllKnownTypes()[kind.GroupVersion().WithKind(kind.Kind+"List")]
}

// configFor is a configuration for requests for a kind.
func configFor(config *rest.Config, scheme *runtime.Scheme, kind schema.GroupVersionKind) *rest.Config {
	version := kind.GroupVersion()
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &version, "/apis"
	config.NegotiatedSerializer = newCodecs(scheme, kind)
	return config
}

// requests lists and watches the objects of a kind in all namespaces.
type requests struct {
	config     *rest.Config
	client     *http.Client
	mapper     meta.RESTMapper
	kind       schema.GroupVersionKind
	parameters runtime.ParameterCodec
	list       reflect.Type
}

// List lists them.
func (r *requests) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	request, err := r.get(&options)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", r.kind.Kind, err)
	}
	list := reflect.New(r.list).Interface().(runtime.Object)
	if err := request.Do(ctx).Into(list); err != nil {
		return nil, err // The informer looks for the API server's word in it.
	}
	return list, nil
}

// Watch watches them.
func (r *requests) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch, options.AllowWatchBookmarks = true, true
	request, err := r.get(&options)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", r.kind.Kind, err)
	}
	return request.Watch(ctx)
}

func (r *requests) get(options *metav1.ListOptions) (*rest.Request, error) {
	mapping, err := r.mapper.RESTMapping(r.kind.GroupKind(), r.kind.Version)
	if err != nil {
		return nil, err
	}
	api, err := rest.RESTClientForConfigAndClient(r.config, r.client)
	if err != nil {
		return nil, err
	}
	return api.Get().Resource(mapping.Resource.Resource).VersionedParams(options, r.parameters), nil
}
