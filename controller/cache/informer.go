// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

// pageSize is how many objects of a list are decoded at once: one in etcd has up to 1.5 MiB, and
// may be ten times as long when it is decoded.
const pageSize = 10

// reading is held while a page is read and trimmed, by all informers of the process.
var reading = semaphore.NewWeighted(1)

// newInformer returns client-go's informer. It reads its objects in one watch, in which each is
// trimmed before the next is decoded, and lists them where the API server has no such watches. The
// lists of client-go have 500 objects a page, or all objects where the API server ignores a limit
// (resourceVersion 0), and are trimmed at their end; these are read and trimmed page by page.
func newInformer(of toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	in := toolscache.ToListerWatcherWithContext(of)
	pages := pager.ListPager{PageFn: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return readPage(ctx, in, opts)
	}}
	list := func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		opts.ResourceVersion, opts.ResourceVersionMatch, opts.Limit = "", "", pageSize
		all, _, err := pages.ListWithAlloc(ctx, opts)
		return all, err
	}
	return toolscache.NewSharedIndexInformer(
		&toolscache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: in.WatchWithContext}, kind, resync, indexers)
}

// readPage returns a page whose objects are trimmed.
func readPage(ctx context.Context, from toolscache.ListerWithContext, opts metav1.ListOptions) (runtime.Object, error) {
	if err := reading.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer reading.Release(1)
	page, err := from.ListWithContext(ctx, opts)
	if err != nil {
		return nil, err
	}
	return page, meta.EachListItem(page, func(obj runtime.Object) error {
		_, err := Trim(obj)
		return err
	})
}
