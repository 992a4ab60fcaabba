// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/app"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/deployment"
	"github.com/modelbox-operator/modelbox-operator/controller/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/controller/modelbox"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// A counter is a client that counts the writes that a reconciler makes and keeps what it
// creates, which is what it desires.
type counter struct {
	mu      sync.Mutex
	writes  []string
	created map[string]tree
}

func newCounter() *counter { return &counter{created: map[string]tree{}} }

func (r *counter) record(verb string, obj any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, fmt.Sprintf("%s %T", verb, obj))
}

func (r *counter) client() client.Client {
	return interceptor.NewClient(env.Client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			r.record("create", obj)
			desired, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
			if err != nil {
				return err
			}
			r.created[obj.GetObjectKind().GroupVersionKind().Kind] = desired
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			r.record("update", obj)
			return c.Update(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			r.record("delete", obj)
			return c.Delete(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			r.record("patch", obj)
			return c.Patch(ctx, obj, patch, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			r.record("apply", obj)
			return c.Apply(ctx, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			body, err := patch.Data(obj)
			if err != nil {
				return err
			}
			r.record("patch "+sub+" with "+string(body)+" of", obj)
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
}

// reconciler is the reconciler of a kind in a process that has just started.
func reconciler(c client.Client, kind string) reconcile.Reconciler {
	seen := events.NewFakeRecorder(100)
	writer := apply.Writer{Client: c, Live: c, Recorder: seen}
	shared := deployment.Reconciler{Writer: writer, Clock: clock.RealClock{}}
	switch kind {
	case "ModelBox":
		return status.Recorded[*modelv1.ModelBox](c, seen, &modelbox.Reconciler{Reconciler: shared})
	case "App":
		return status.Recorded[*appv1.App](c, seen, &app.Reconciler{Reconciler: shared})
	}
	return status.Recorded[*mydomainv1beta1.Genericdaemon](c, seen,
		&genericdaemon.Reconciler{Writer: writer, Clock: clock.RealClock{}})
}
