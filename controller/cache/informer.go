// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

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
	toolscache "k8s.io/client-go/tools/cache"
)

// newInformer has the type of ctrlcache.Options.NewInformer.
type newInformer func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// newInformers returns a function that returns informers: those of custom resources list and
// watch with this package's decoder, all others as controller-runtime's do.
func newInformers(config *rest.Config, client *http.Client, scheme *runtime.Scheme, mapper meta.RESTMapper, namespaced bool) newInformer {
	return func(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		kind, ok := customKind(scheme, obj)
		if !ok {
			return toolscache.NewSharedIndexInformer(lw, obj, resync, indexers)
		}
		decoding := &listerWatcher{config: configFor(config, scheme, kind), client: client, mapper: mapper, kind: kind,
			parameters: runtime.NewParameterCodec(scheme), listType: listTypeOf(scheme, kind)}
		if namespaced {
			decoding.namespace, decoding.unknown = namespaceOf(lw)
		}
		indexers = maps.Clone(indexers)
		indexers[undecodableIndex] = indexUndecodable
		informer := toolscache.NewSharedIndexInformer(
			&toolscache.ListWatch{ListWithContextFunc: decoding.List, WatchFuncWithContext: decoding.Watch}, obj, resync, indexers)
		undecodable.indexers.Store(informerKey{kind.Kind, decoding.namespace}, informer.GetIndexer())
		return informer
	}
}

// customKind returns the kind of an object, and reports whether it is a custom resource: a
// kind that is not part of Kubernetes.
func customKind(scheme *runtime.Scheme, obj runtime.Object) (schema.GroupVersionKind, bool) {
	kinds, _, err := scheme.ObjectKinds(obj)
	if err != nil || clientgoscheme.Scheme.Recognizes(kinds[0]) {
		return schema.GroupVersionKind{}, false
	}
	return kinds[0], true
}

// listTypeOf returns the Go type of a kind's lists.
func listTypeOf(scheme *runtime.Scheme, kind schema.GroupVersionKind) reflect.Type {
	return scheme.AllKnownTypes()[kind.GroupVersion().WithKind(kind.Kind+"List")]
}

// configFor returns the configuration of a client for a kind.
func configFor(config *rest.Config, scheme *runtime.Scheme, kind schema.GroupVersionKind) *rest.Config {
	version := kind.GroupVersion()
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &version, "/apis"
	config.NegotiatedSerializer = newSerializer(scheme, kind)
	return config
}

// listerWatcher lists and watches the objects of a kind, in one namespace or in all.
type listerWatcher struct {
	// namespace is empty for all.
	namespace string
	// unknown is why the namespace is not known; then all requests fail.
	unknown    error
	config     *rest.Config
	client     *http.Client
	mapper     meta.RESTMapper
	kind       schema.GroupVersionKind
	parameters runtime.ParameterCodec
	listType   reflect.Type
}

// List lists the objects.
func (l *listerWatcher) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	request, err := l.get(&options)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", l.kind.Kind, err)
	}
	list := reflect.New(l.listType).Interface().(runtime.Object)
	if err := request.Do(ctx).Into(list); err != nil {
		return nil, err // Not wrapped: the informer examines the API server's error.
	}
	return list, nil
}

// Watch watches the objects.
func (l *listerWatcher) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch, options.AllowWatchBookmarks = true, true
	request, err := l.get(&options)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", l.kind.Kind, err)
	}
	return request.Watch(ctx)
}

func (l *listerWatcher) get(options *metav1.ListOptions) (*rest.Request, error) {
	if l.unknown != nil {
		return nil, l.unknown
	}
	mapping, err := l.mapper.RESTMapping(l.kind.GroupKind(), l.kind.Version)
	if err != nil {
		return nil, err
	}
	client, err := rest.RESTClientForConfigAndClient(l.config, l.client)
	if err != nil {
		return nil, err
	}
	return client.Get().NamespaceIfScoped(l.namespace, l.namespace != "").Resource(mapping.Resource.Resource).VersionedParams(options, l.parameters), nil
}
