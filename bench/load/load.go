// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load makes objects, and watches from outside what becomes of them.
package load

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/bench/boxes"
	"github.com/modelbox-operator/modelbox-operator/bench/plane"
)

// hands is how many objects are made at once.
const hands = 16

// Each does something for each number, several at once.
func Each(ctx context.Context, from, to int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(hands)
	for i := from; i < to; i++ {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// Create makes the objects of the numbers from one to before another.
func Create(ctx context.Context, p *plane.Plane, from, to int, object func(i int) client.Object) error {
	return Each(ctx, from, to, func(ctx context.Context, i int) error {
		obj := object(i)
		obj.SetNamespace(plane.Namespace)
		if err := p.Client.Create(ctx, obj); err != nil {
			return fmt.Errorf("making %s: %w", obj.GetName(), err)
		}
		return nil
	})
}

// WarmUp lets the API server do once, for nothing, what the contestant will ask of
// it: the first request of a sort costs more than those that follow.
func WarmUp(ctx context.Context, p *plane.Plane) error {
	const times = 30
	dry := client.NewDryRunClient(p.Client)
	return Each(ctx, 0, times, func(ctx context.Context, i int) error {
		for _, obj := range []client.Object{boxes.Deployment(boxes.Name(i)), boxes.Service(boxes.Name(i))} {
			obj.SetNamespace(plane.Namespace)
			if err := dry.Create(ctx, obj); err != nil {
				return fmt.Errorf("warming the API server up: %w", err)
			}
		}
		return nil
	})
}

// Paced does something for each number at an even rate, whatever the answers take:
// a loader that waits for answers slows down with the server and hides its
// slowness.
func Paced(ctx context.Context, n int, perSecond float64, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for i := range n {
		due := start.Add(time.Duration(float64(i) / perSecond * float64(time.Second)))
		if err := plane.Pause(ctx, time.Until(due)); err != nil {
			break
		}
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
