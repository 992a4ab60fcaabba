// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
)

// New returns a cache whose informers decode custom resources with this package's decoder,
// and whose objects are trimmed and packed. It is a ctrlcache.NewCacheFunc for the options
// of a manager, which fills in the HTTP client, the scheme and the mapper of opts before it
// calls New: the informers share them with the clients, so that New sends no request.
func New(config *rest.Config, opts ctrlcache.Options) (ctrlcache.Cache, error) {
	opts.DefaultTransform = new(packer).trimAndPack
	namespaced := len(opts.DefaultNamespaces) > 0
	if namespaced {
		opts.HTTPClient = recording(opts.HTTPClient)
	}
	opts.NewInformer = newInformers(config, opts.HTTPClient, opts.Scheme, opts.Mapper, namespaced)
	return ctrlcache.New(config, opts)
}
