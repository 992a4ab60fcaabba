// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// aMoment is how long each read may wait until the cache shows the last write of its object,
	// and longestWait how long waiters of them may: fewer than there are workers of one kind, so
	// that a watch that has stopped holds no more of them. The other reads fail, and are tried
	// again.
	aMoment, longestWait = 200 * time.Millisecond, 10 * time.Second
	waiters              = 4
)

// Get implements client.Reader.
func (c *limited) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	get := func(wait time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		return c.Client.Get(ctx, key, obj, opts...)
	}
	err := get(aMoment)
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || !c.waiting.TryAcquire(1) {
		return err
	}
	defer c.waiting.Release(1)
	return get(longestWait)
}
