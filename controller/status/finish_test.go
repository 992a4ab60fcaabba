// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// busy is a reconciler whose reconciles take a time, or until their context ends.
type busy struct {
	takes, took time.Duration
	begun       chan struct{}
}

func (b *busy) Reconcile(ctx context.Context, obj *modelv1.ModelBox, _ *Writer) (reconcile.Result, error) {
	close(b.begun)
	from := time.Now()
	select {
	case <-time.After(b.takes):
		obj.Status.Replicas = 7
	case <-ctx.Done():
	}
	b.took = time.Since(from)
	return reconcile.Result{}, ctx.Err()
}

// A reconcile that is under way when the manager stops ends as any other, and writes status, unless it
// takes longer than finishTimeout or than its deadline. One that has not begun does not begin.
func TestAReconcileThatIsUnderWayFinishes(t *testing.T) {
	t.Parallel()
	const stopped = 3 * time.Second
	for name, tt := range map[string]struct {
		takes, deadline, want time.Duration
		written               bool
	}{
		"shorter than the limit": {takes: 12 * time.Second, deadline: time.Minute, want: 12 * time.Second, written: true},
		"longer":                 {takes: time.Hour, deadline: time.Minute, want: stopped + finishTimeout},
		"a deadline before":      {takes: time.Hour, deadline: 5 * time.Second, want: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				box := &modelv1.ModelBox{}
				box.Namespace, box.Name = "team", "box"
				c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(box).WithStatusSubresource(box).Build()
				b := &busy{takes: tt.takes, begun: make(chan struct{})}
				reconciler := NewReconciler(c, events.NewFakeRecorder(10), b, Options{})
				req := reconcile.Request{NamespacedName: numbered(0)}
				req.Name = "box"
				manager, stop := context.WithCancel(t.Context())
				ctx, cancel := context.WithTimeout(manager, tt.deadline)
				defer cancel()
				ended := make(chan error)
				go func() {
					_, err := reconciler.Reconcile(ctx, req)
					ended <- err
				}()
				<-b.begun
				time.AfterFunc(stopped, stop)
				if err := <-ended; (err == nil) != tt.written || b.took != tt.want {
					t.Errorf("the reconcile took %s, want %s; its error: %v", b.took, tt.want, err)
				}
				if err := c.Get(t.Context(), req.NamespacedName, box); err != nil || (box.Status.Replicas == 7) != tt.written {
					t.Errorf("status is written: %t, want %t (%v)", !tt.written, tt.written, err)
				}
				if _, err := reconciler.Reconcile(ctx, req); err == nil { // A second one would close begun again.
					t.Error("a reconcile began after the manager had stopped")
				}
			})
		})
	}
}
