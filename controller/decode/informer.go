// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"context"
	"fmt"
	"net/http"
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

// Informers makes informers, of which those of custom resources watch with this
// package's decoder. Lists, and all else, are as the cache does them.
func Informers(config *rest.Config, client *http.Client, scheme *runtime.Scheme, mapper meta.RESTMapper) NewInformer {
	return func(lw cache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		if kind, ok := customKind(scheme, obj); ok {
			lw = &cache.ListWatch{
				ListWithContextFunc:  cache.ToListerWithContext(lw).ListWithContext,
				WatchFuncWithContext: watcher(config, client, scheme, mapper, kind),
			}
		}
		return cache.NewSharedIndexInformer(lw, obj, resync, indexers)
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

// watcher watches the objects of a kind in all namespaces.
func watcher(config *rest.Config, client *http.Client, scheme *runtime.Scheme, mapper meta.RESTMapper, kind schema.GroupVersionKind) cache.WatchFuncWithContext {
	version := kind.GroupVersion()
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &version, "/apis"
	config.NegotiatedSerializer = newCodecs(scheme, kind)
	parameters := runtime.NewParameterCodec(scheme)
	return func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", kind.Kind, err)
		}
		api, err := rest.RESTClientForConfigAndClient(config, client)
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", kind.Kind, err)
		}
		options.Watch, options.AllowWatchBookmarks = true, true
		return api.Get().Resource(mapping.Resource.Resource).VersionedParams(&options, parameters).Watch(ctx)
	}
}
