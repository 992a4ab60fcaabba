// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
)

// What the other tenant has.
const (
	editedObjects, editsPerSecond = 60, 9
	refusedFrom, refusedObjects   = 1000, 500
)

// tenants measures the latency of new objects alone, beside another namespace whose objects are edited, and
// beside one of objects whose Deployments a quota refuses, one after the other with the same controller.
func (b *bench) tenants(ctx context.Context) error {
	return alone(ctx, func(ctx context.Context, r *running) error {
		const singles = 200
		for i, load := range []struct {
			row   string
			begin func(context.Context) error
		}{
			{"alone", func(context.Context) error { return nil }},
			{fmt.Sprintf("beside %d objects with %d edits a second", editedObjects, editsPerSecond), r.edit},
			{fmt.Sprintf("beside %d objects whose Deployment is refused", refusedObjects), r.refuse},
		} {
			during, end := context.WithCancel(ctx)
			err := load.begin(during)
			var times []float64
			if err == nil {
				times, err = r.paced(ctx, singles*i, singles*(i+1), 5)
			}
			if end(); err != nil {
				return fmt.Errorf("%s: %w", load.row, err)
			}
			for _, q := range []float64{0.5, 0.99} {
				row := fmt.Sprintf("tenants: p%.0f of a new object ", 100*q)
				b.record(row+load.row+", ms", quantile(times, q))
				if i > 0 {
					b.ratio(row+load.row+" / alone", row+load.row+", ms", row+"alone, ms")
				}
			}
		}
		return nil
	})
}

// edit creates the objects of the other tenant, and edits one after the other until the context ends.
func (r *running) edit(ctx context.Context) error {
	err := r.create(ctx, noisyNamespace, 0, editedObjects)
	if err == nil {
		err = idle(ctx, []int{r.program.Process.Pid})
	}
	go func() {
		ticker := time.NewTicker(time.Second / editsPerSecond)
		defer ticker.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			box := modelboxes.ModelBox(i % editedObjects)
			box.Namespace = noisyNamespace
			change := fmt.Appendf(nil, `{"spec":{"terminationGracePeriodSeconds":%d}}`, i+1)
			_ = r.Patch(ctx, box, client.RawPatch(types.MergePatchType, change)) // Another tenant continues after an error.
			<-ticker.C
		}
	}()
	return err
}

// refuse creates a quota without Deployments, with the status that its controller would write, and objects.
func (r *running) refuse(ctx context.Context) error {
	none := corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: noisyNamespace, Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
	}
	if err := r.Create(ctx, quota); err != nil {
		return err
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	if err := r.Status().Update(ctx, quota); err != nil {
		return err
	}
	return r.create(ctx, noisyNamespace, refusedFrom, refusedFrom+refusedObjects)
}
