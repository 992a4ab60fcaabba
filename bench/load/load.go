// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load creates objects and watches their progress independently of the
// implementation.
package load

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/bench/controlplane"
	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
)

// parallelism is how many objects are created at the same time.
const parallelism = 16

// Each calls do for each number in [from, to), several at the same time.
func Each(ctx context.Context, from, to int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for i := from; i < to; i++ {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// Create creates the objects with the numbers in [from, to).
func Create(ctx context.Context, p *controlplane.ControlPlane, from, to int, object func(i int) client.Object) error {
	return Each(ctx, from, to, func(ctx context.Context, i int) error {
		obj := object(i)
		obj.SetNamespace(controlplane.Namespace)
		if err := p.Client.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %s: %w", obj.GetName(), err)
		}
		return nil
	})
}

// WarmUp sends dry-run requests of the kinds that the implementation will send: the
// first requests of a kind cost the API server more than later ones.
func WarmUp(ctx context.Context, p *controlplane.ControlPlane) error {
	const times = 30
	dry := client.NewDryRunClient(p.Client)
	return Each(ctx, 0, times, func(ctx context.Context, i int) error {
		for _, obj := range []client.Object{modelboxes.Deployment(modelboxes.Name(i)), modelboxes.Service(modelboxes.Name(i))} {
			obj.SetNamespace(controlplane.Namespace)
			if err := dry.Create(ctx, obj); err != nil {
				return fmt.Errorf("warming up the API server: %w", err)
			}
		}
		return nil
	})
}

// Paced calls do for each number at a constant rate, without waiting for earlier calls
// (an open loop): a load generator that waits for responses becomes slower with the
// server and hides its latency.
func Paced(ctx context.Context, n int, perSecond float64, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for i := range n {
		due := start.Add(time.Duration(float64(i) / perSecond * float64(time.Second)))
		if err := controlplane.Pause(ctx, time.Until(due)); err != nil {
			break
		}
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
