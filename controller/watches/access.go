// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/apply"
)

const (
	// atOnce is how many requests for the objects of one kind are under way: fewer than there are
	// workers, so that a kind whose conversion or admission webhook does not answer cannot hold all
	// of them.
	atOnce = 2
	// longestRequest bounds one of these requests, and maxWait how long another one waits for its
	// turn.
	longestRequest, maxWait = 10 * time.Second, 100 * time.Millisecond
)

// requests are a client and a live reader for a kind that a cluster may lose. Its informer may be
// another one than that of an earlier write, so nothing waits for the cache to show a write.
type requests struct {
	client.Client
	live client.Reader
	free *semaphore.Weighted
}

func newAccess(c client.Client, live client.Reader) *apply.Access {
	r := &requests{Client: c, live: live, free: semaphore.NewWeighted(atOnce)}
	return &apply.Access{Client: r, Live: liveRequests{r}}
}

// bounded sends a request when it is its turn.
func (r *requests) bounded(ctx context.Context, send func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if err := r.free.Acquire(waiting, 1); err != nil {
		return fmt.Errorf("%d requests for objects of this kind are under way and have not been answered: %w", atOnce, err)
	}
	defer r.free.Release(1)
	ctx, cancel = context.WithTimeout(ctx, longestRequest)
	defer cancel()
	return send(ctx)
}

// Get implements client.Reader, from the cache.
func (r *requests) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return r.Client.Get(ctx, key, obj, append(opts, client.DisableReadYourWritesConsistency)...)
}

// Create implements client.Writer.
func (r *requests) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return r.bounded(ctx, func(ctx context.Context) error {
		return r.Client.Create(ctx, obj, append(opts, client.DisableReadYourWritesConsistency)...)
	})
}

// Patch implements client.Writer.
func (r *requests) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return r.bounded(ctx, func(ctx context.Context) error {
		return r.Client.Patch(ctx, obj, patch, append(opts, client.DisableReadYourWritesConsistency)...)
	})
}

// Delete implements client.Writer.
func (r *requests) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return r.bounded(ctx, func(ctx context.Context) error {
		return r.Client.Delete(ctx, obj, append(opts, client.DisableReadYourWritesConsistency)...)
	})
}

// liveRequests are the reads from the API server.
type liveRequests struct{ *requests }

// Get implements client.Reader. The owner of a child is read by it as well.
func (r liveRequests) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return r.bounded(ctx, func(ctx context.Context) error { return r.live.Get(ctx, key, obj, opts...) })
}
