// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

func numbered(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: fmt.Sprint("object-", i)}
}

// conditionsOf returns the conditions of an object in a state.
func conditionsOf(state Readiness) []metav1.Condition {
	var conditions []metav1.Condition
	state.SetConditions(&conditions, 1, at(0))
	return conditions
}

// series returns the values of all series, by kind and reason. The registry refuses series that
// are not as the collector describes them.
func series(t *testing.T, r *reasonCounts) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(r)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			values[metric.GetLabel()[0].GetValue()+" "+metric.GetLabel()[1].GetValue()] = metric.GetGauge().GetValue()
		}
	}
	return values
}

func TestObjectsNotReadyByReason(t *testing.T) {
	t.Parallel()
	r := &reasonCounts{}
	for i := range 3 {
		r.observe("App", numbered(i), conditionsOf(NewReconciling(ReasonProgressing, "")))
	}
	r.observe("ModelBox", numbered(0), conditionsOf(NewStalled(ReasonInvalidSpec, "")))
	r.observe("ModelBox", numbered(1), conditionsOf(NewReady("")))
	r.observe("ModelBox", numbered(2), nil)
	r.observe("App", numbered(0), conditionsOf(NewStalled(ReasonInvalidSpec, ""))) // The reason changes,
	r.observe("App", numbered(1), conditionsOf(NewReady("")))                      // and this one becomes ready.
	r.set("Eru", numbered(0), ReasonInvalidSpec)
	r.forget("Eru", numbered(1)) // An unknown object has no effect.
	want := map[string]float64{"App InvalidSpec": 1, "App Progressing": 1, "Eru InvalidSpec": 1, "ModelBox InvalidSpec": 1}
	if diff := cmp.Diff(want, series(t, r)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	r.forget("Eru", numbered(0))
	r.forget("ModelBox", numbered(0))
	r.forget("App", numbered(0))
	r.observe("App", numbered(2), conditionsOf(NewReady("")))
	if got := series(t, r); len(got) != 0 || len(r.objects) != 0 {
		t.Errorf("every object is ready, and there are the series %v and %d objects", got, len(r.objects))
	}
}

// A client that may write the status can write any reason. The number of series is bounded all
// the same.
func TestReasonsAreBounded(t *testing.T) {
	t.Parallel()
	r := &reasonCounts{}
	for i := range 10 * maxReasons {
		r.set("App", numbered(i), fmt.Sprint("Reason", i))
	}
	if n := len(series(t, r)); n != maxReasons+1 {
		t.Errorf("there are %d series, want %d and one for the others", n, maxReasons)
	}
	if got := r.count()[kindAndReason{"App", otherReason}]; got != 9*maxReasons {
		t.Errorf("%d objects have another reason, want %d", got, 9*maxReasons)
	}
}

// The metric is part of every reconcile.
func TestObservingAllocatesNothing(t *testing.T) {
	r := &reasonCounts{}
	ready, not := conditionsOf(NewReady("")), conditionsOf(NewReconciling(ReasonProgressing, ""))
	r.observe("App", numbered(1), not)
	one, other := numbered(1), numbered(2)
	if got := testing.AllocsPerRun(100, func() {
		r.observe("App", one, not)
		r.observe("App", other, ready)
	}); got != 0 {
		t.Errorf("it allocates %v times, want 0", got)
	}
}

// setsConditions is a reconciler that sets the conditions of a state.
type setsConditions struct{ state Readiness }

func (s setsConditions) Reconcile(_ context.Context, obj *modelv1.ModelBox) (reconcile.Result, error) {
	s.state.SetConditions(&obj.Status.Conditions, obj.Generation, at(0))
	return reconcile.Result{}, nil
}

// Each reconcile counts its object: as its conditions are, or no longer if it is being deleted
// or does not exist.
func TestReconcilesCountObjectsThatAreNotReady(t *testing.T) {
	name := types.NamespacedName{Namespace: "team", Name: "counted"}
	t.Cleanup(func() { notReadyObjects.forget("ModelBox", name) })
	stored := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: "1"}}
	deleted := stored.DeepCopy()
	deleted.Finalizers, deleted.DeletionTimestamp = []string{"example.com/wait"}, &metav1.Time{Time: at(0).Time}
	progressing := NewReconciling(ReasonProgressing, "0 of 1")
	for _, step := range []struct {
		name    string
		objects []client.Object
		state   Readiness
		want    string
	}{
		{"progresses", []client.Object{stored}, progressing, ReasonProgressing},
		{"is invalid", []client.Object{stored}, NewStalled(ReasonInvalidSpec, "wrong"), ReasonInvalidSpec},
		{"is ready", []client.Object{stored}, NewReady("1 of 1"), ""},
		{"progresses again", []client.Object{stored}, progressing, ReasonProgressing},
		{"is being deleted", []client.Object{deleted}, progressing, ""},
		{"progresses once more", []client.Object{stored}, progressing, ReasonProgressing},
		{"is deleted", nil, progressing, ""},
	} {
		c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(step.objects...).WithStatusSubresource(&modelv1.ModelBox{}).Build()
		r := Recorded(c, events.NewFakeRecorder(10), reconcile.ObjectReconciler[*modelv1.ModelBox](setsConditions{step.state}))
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: name}); err != nil {
			t.Fatal(err)
		}
		notReadyObjects.mu.Lock()
		got := notReadyObjects.objects[objectKey{"ModelBox", name}]
		notReadyObjects.mu.Unlock()
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("the object %s (-want +got):\n%s", step.name, diff)
		}
	}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := api.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}
