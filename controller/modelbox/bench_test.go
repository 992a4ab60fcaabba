// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

// store is a client with one ModelBox and its children. It returns copies of them as a
// cache does, and counts the writes.
type store struct {
	client.Client
	box        *modelv1.ModelBox
	deployment *appsv1.Deployment
	service    *corev1.Service
	writes     int
}

func (s *store) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch into := obj.(type) {
	case *modelv1.ModelBox:
		s.box.DeepCopyInto(into)
		return nil
	case *appsv1.Deployment:
		if s.deployment != nil {
			s.deployment.DeepCopyInto(into)
			return nil
		}
	case *corev1.Service:
		if s.service != nil {
			s.service.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (s *store) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	s.writes++
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		s.deployment = obj.DeepCopy()
	case *corev1.Service:
		s.service = obj.DeepCopy()
	}
	return nil
}

func (s *store) Status() client.SubResourceWriter { return statusStore{store: s} }

type statusStore struct {
	client.SubResourceWriter
	store *store
}

func (s statusStore) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	s.store.writes++
	s.store.box = obj.(*modelv1.ModelBox).DeepCopy()
	return nil
}

// atRest returns a ModelBox that has been reconciled, and a function that reconciles it.
func atRest(tb testing.TB) (*store, func()) {
	tb.Helper()
	box := &modelv1.ModelBox{}
	box.Name, box.Namespace, box.UID, box.Generation = "box", "default", "6a1e2c55-0000-4000-8000-000000000000", 1
	box.Spec.Image = "registry.example.com/team/server:1.2"
	box.Spec.Ports = []modelv1.Port{{Name: "http", Port: 8080}}
	for i := range 5 {
		box.Spec.Envs = append(box.Spec.Envs, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: "value"})
	}
	modelbox.Default(box, nil, nil) // As admission has stored it.
	s := &store{box: box}
	recorder := events.NewFakeRecorder(1)
	r := status.Recorded(client.Client(s), recorder, &Reconciler{Reconciler: workload.Reconciler{
		Writer: apply.Writer{Client: s, Live: s, Recorder: recorder}, Clock: clock.RealClock{},
	}})
	once := func() {
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(box)}
		if _, err := r.Reconcile(context.Background(), request); err != nil {
			tb.Fatal(err)
		}
	}
	once()
	if s.writes != 3 {
		tb.Fatalf("%d writes for a new object, want 3", s.writes)
	}
	return s, once
}

func TestReconcileOfAnUnchangedObjectWritesNothing(t *testing.T) {
	s, once := atRest(t)
	for range 3 {
		once()
	}
	if s.writes != 3 {
		t.Errorf("%d writes for an object whose observed state is the desired state", s.writes-3)
	}
}

func BenchmarkReconcileUnchanged(b *testing.B) {
	_, once := atRest(b)
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
}

func BenchmarkChildren(b *testing.B) {
	s, _ := atRest(b)
	b.ReportAllocs()
	for b.Loop() {
		build(b, s.box)
	}
}

func build(tb testing.TB, box *modelv1.ModelBox) {
	w := workloadOf(box, modelsource.Fetcher{Image: "modelbox-controller:test"})
	if _, err := w.Deployment(); err != nil {
		tb.Fatal(err)
	}
	w.Service()
}
