// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"context"
	"errors"
	"testing"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Of 50 reads for which the cache has no answer, few wait: the others fail, and give their workers
// back.
func TestFewWait(t *testing.T) {
	t.Parallel()
	c := New(interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			if key.Name == "known" {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		},
	}), clock.RealClock{})
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error, 50)
	for range cap(results) {
		go func() { results <- c.Get(ctx, client.ObjectKey{Name: "unknown"}, deployment("a")) }()
	}
	for range cap(results) - waiters {
		if err := <-results; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a read that does not wait: %v", err)
		}
	}
	if err := c.Get(ctx, client.ObjectKey{Name: "known"}, deployment("a")); err != nil {
		t.Errorf("another read: %v", err)
	}
	if len(results) != 0 {
		t.Errorf("%d reads too many have ended", len(results))
	}
	cancel()
	for range waiters {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("a read that waits: %v", err)
		}
	}
}
