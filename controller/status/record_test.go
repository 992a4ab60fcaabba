// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
)

func numbered(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: fmt.Sprint("object-", i)}
}

func newCounts() *reasonCounts {
	return newReasonCounts(ConditionReady, metav1.ConditionTrue, "not_ready", "")
}

// series returns the values of all series that are not 0, by kind and reason.
func series(t *testing.T, r *reasonCounts) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(r.gauge)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if value := metric.GetGauge().GetValue(); value != 0 {
				values[metric.GetLabel()[0].GetValue()+" "+metric.GetLabel()[1].GetValue()] = value
			}
		}
	}
	return values
}

func TestObjectsNotReadyByReason(t *testing.T) {
	t.Parallel()
	r := newCounts()
	observe := func(name types.NamespacedName, states ...Readiness) {
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
		for _, state := range states {
			state.SetConditions(&box.Status.Conditions, 1, at(0))
		}
		r.observe("ModelBox", box)
	}
	for i := range 3 {
		observe(numbered(i), NewReconciling(ReasonProgressing, ""))
	}
	observe(numbered(3), NewReady(""))
	observe(numbered(4)) // It has no conditions.
	observe(numbered(0), NewStalled(ReasonInvalidSpec, ""))
	observe(numbered(1), NewReady(""))
	r.set("Eru", numbered(0), ReasonInvalidSpec)
	r.set("Eru", numbered(1), "") // An unknown object has no effect.
	want := map[string]float64{"ModelBox InvalidSpec": 1, "ModelBox Progressing": 1, "Eru InvalidSpec": 1}
	if diff := cmp.Diff(want, series(t, r)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	r.set("Eru", numbered(0), "")
	r.set("ModelBox", numbered(0), "")
	observe(numbered(2), NewReady(""))
	if got := series(t, r); len(got) != 0 || len(r.objects) != 0 {
		t.Errorf("every object is ready, and there are the series %v and %d objects", got, len(r.objects))
	}
}

// A client that may write the status can write any reason. The number of series is bounded all
// the same.
func TestReasonsAreBounded(t *testing.T) {
	t.Parallel()
	r := newCounts()
	for i := range 10 * maxReasons {
		r.set("App", numbered(i), fmt.Sprint("Reason", i))
	}
	got := series(t, r)
	if len(got) != maxReasons+1 || got["App other"] != 9*maxReasons {
		t.Errorf("there are %d series, and %v objects in that of the others; want %d and %d", len(got), got["App other"], maxReasons+1, 9*maxReasons)
	}
}

// setsConditions is a reconciler that sets the conditions of a state.
type setsConditions struct {
	state  Readiness
	differ string
}

func (s setsConditions) Reconcile(_ context.Context, obj *modelv1.ModelBox, _ *Writer) (reconcile.Result, error) {
	s.state.SetConditions(&obj.Status.Conditions, obj.Generation, at(0))
	SetModelDiffers(&obj.Status.Conditions, s.differ, obj.Generation, at(0))
	return reconcile.Result{}, nil
}

// Each reconcile counts its object: as its conditions are, or no longer if it is being deleted
// or does not exist.
func TestReconcilesCountObjectsByTheirConditions(t *testing.T) {
	name := types.NamespacedName{Namespace: "team", Name: "counted"}
	counts := []*reasonCounts{notReadyObjects, differingObjects}
	t.Cleanup(func() {
		for _, count := range counts {
			count.set("ModelBox", name, "")
		}
	})
	stored := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: "1"}}
	deleted := stored.DeepCopy()
	deleted.Finalizers, deleted.DeletionTimestamp = []string{"example.com/wait"}, &metav1.Time{Time: at(0).Time}
	progressing := NewReconciling(ReasonProgressing, "0 of 1")
	for _, step := range []struct {
		name    string
		objects []client.Object
		state   Readiness
		differ  string
		want    [2]string
	}{
		{"progresses", []client.Object{stored}, progressing, "", [2]string{ReasonProgressing}},
		{"is invalid", []client.Object{stored}, NewStalled(ReasonInvalidSpec, "wrong"), "x", [2]string{ReasonInvalidSpec, ReasonDigestsDiffer}},
		{"is ready", []client.Object{stored}, NewReady("1 of 1"), "x", [2]string{"", ReasonDigestsDiffer}},
		{"has the same bytes", []client.Object{stored}, NewReady("1 of 1"), "", [2]string{}},
		{"progresses again", []client.Object{stored}, progressing, "x", [2]string{ReasonProgressing, ReasonDigestsDiffer}},
		{"is being deleted", []client.Object{deleted}, progressing, "x", [2]string{}},
		{"progresses once more", []client.Object{stored}, progressing, "x", [2]string{ReasonProgressing, ReasonDigestsDiffer}},
		{"is deleted", nil, progressing, "x", [2]string{}},
	} {
		c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(step.objects...).WithStatusSubresource(&modelv1.ModelBox{}).Build()
		r := NewReconciler(c, events.NewFakeRecorder(10), setsConditions{step.state, step.differ}, Options{})
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: name}); err != nil {
			t.Fatal(err)
		}
		var got [2]string
		for i, count := range counts {
			count.mu.Lock()
			got[i] = count.objects[objectKey{"ModelBox", name}]
			count.mu.Unlock()
		}
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

// recorded reconciles a stored ModelBox, of which the cache has a version, with a reconciler that
// sets a state.
func recorded(t *testing.T, kind Reconciler[*modelv1.ModelBox], readErr, writeErr error) (reconcile.Result, *modelv1.ModelBox, *events.FakeRecorder, error) {
	t.Helper()
	box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "box", Generation: 2}}
	recorder := events.NewFakeRecorder(10)
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(box).WithStatusSubresource(box).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, obj, opts...)
			obj.GetObjectKind().SetGroupVersionKind(modelv1.SchemeGroupVersion.WithKind("ModelBox")) // As the cache does.
			return errors.Join(err, readErr)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if writeErr != nil {
				return writeErr
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	t.Cleanup(func() { notReadyObjects.set("ModelBox", client.ObjectKeyFromObject(box), "") })
	result, err := NewReconciler(c, recorder, kind, Options{}).Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(box)})
	stored := &modelv1.ModelBox{}
	if readErr := c.Get(t.Context(), client.ObjectKeyFromObject(box), stored); readErr != nil && stored.Name == "" {
		t.Fatal(readErr)
	}
	return result, stored, recorder, err
}

func TestAWarningFollowsTheWriteOfStatus(t *testing.T) {
	stalled := setsConditions{state: NewStalled(ReasonInvalidSpec, "wrong")}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "modelboxes"}, "box", errors.New("it was changed"))
	for _, test := range []struct {
		name    string
		write   error
		events  int
		want    reconcile.Result
		wantErr bool
	}{
		{name: "written", events: 1},
		{name: "stale: the watch event is the retry", write: conflict, want: reconcile.Result{RequeueAfter: retryStale}},
		{name: "deleted meanwhile", write: apierrors.NewNotFound(schema.GroupResource{Resource: "modelboxes"}, "box")},
		{name: "refused", write: apierrors.NewForbidden(schema.GroupResource{Resource: "modelboxes"}, "box", nil), wantErr: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, stored, recorder, err := recorded(t, stalled, nil, test.write)
			if result != test.want || (err != nil) != test.wantErr || len(recorder.Events) != test.events {
				t.Errorf("the result is %v and %v, with %d events; want %v and an error: %v, with %d", result, err, len(recorder.Events), test.want, test.wantErr, test.events)
			}
			if written := readyReason(stored) == ReasonInvalidSpec; written != (test.write == nil) {
				t.Errorf("the stored conditions are %v", stored.Status.Conditions)
			}
		})
	}
}

// failing is a reconciler whose write ahead of another write is refused.
type failing struct{ err error }

func (f failing) Reconcile(context.Context, *modelv1.ModelBox, *Writer) (reconcile.Result, error) {
	return reconcile.Result{RequeueAfter: 1}, f.err
}

func TestErrorsOfTheKind(t *testing.T) {
	notFound := fmt.Errorf("restarting: %w", apierrors.NewNotFound(schema.GroupResource{Resource: "deployments"}, "web"))
	if _, _, _, err := recorded(t, failing{notFound}, nil, nil); !errors.Is(err, notFound) {
		t.Errorf("the error is %v, want that of the kind", err)
	}
	if result, _, _, err := recorded(t, failing{fmt.Errorf("scaling: %w", errStale)}, nil, nil); err != nil || result.RequeueAfter != retryStale {
		t.Errorf("the result is %v and %v, want a retry without an error", result, err)
	}
}

func TestUndecodable(t *testing.T) {
	unreachable := setsConditions{state: NewReady("the kind is not called")}
	for _, test := range []struct {
		name string
		err  cache.UndecodableError
	}{
		{"spec", cache.UndecodableError{Status: []byte(`{"replicas":3}`)}},
		{"status", cache.UndecodableError{Status: []byte(`{"replicas":"x"}`), StatusToo: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.err.Err = errors.New("spec.image is a number")
			_, stored, recorder, err := recorded(t, unreachable, &test.err, nil)
			if err != nil || readyReason(stored) != ReasonInvalidSpec || stored.Status.ObservedGeneration != 2 || len(recorder.Events) != 1 {
				t.Errorf("status is %+v, with %d events: %v", stored.Status, len(recorder.Events), err)
			}
		})
	}
}

// changing is a reconciler whose state changes, and which may return an error as well.
type changing struct {
	state int
	err   error
}

func (c *changing) Reconcile(_ context.Context, obj *modelv1.ModelBox, _ *Writer) (reconcile.Result, error) {
	NewReconciling(ReasonProgressing, fmt.Sprint(c.state)).SetConditions(&obj.Status.Conditions, obj.Generation, at(0))
	return reconcile.Result{}, c.err
}

// However often the state of an object changes: its status has ten writes and then one a second,
// and a state that stays is in it at most a second later.
func TestTheLastStateIsAlwaysWritten(t *testing.T) {
	r, clk := rand.New(rand.NewPCG(1, 2)), clocktesting.NewFakePassiveClock(at(0).Time)
	box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "box", UID: "1"}}
	writes, deferred := 0, 0
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(box).WithStatusSubresource(box).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			writes++
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	t.Cleanup(func() { notReadyObjects.set("ModelBox", client.ObjectKeyFromObject(box), "") })
	kind := &changing{}
	reconciler := NewReconciler(limit.New(c, clk), events.NewFakeRecorder(10), kind, Options{})
	var changed, due time.Time
	run := func() {
		result, err := reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(box)})
		if due = (time.Time{}); result.RequeueAfter > 0 {
			due = clk.Now().Add(result.RequeueAfter)
			deferred++
		} else if !errors.Is(err, kind.err) {
			t.Fatalf("the error is %v, want %v", err, kind.err)
		}
	}
	for range 3000 {
		if r.IntN(3) > 0 {
			kind.state, kind.err, changed = kind.state+1, nil, clk.Now()
			if r.IntN(4) == 0 {
				kind.err = errors.New("the API server refused a child")
			}
			run()
		} else if pass := clk.Now().Add(time.Duration(r.IntN(1500)) * time.Millisecond); !due.IsZero() && due.Before(pass) {
			clk.SetTime(due)
			run()
		} else {
			clk.SetTime(pass)
		}
		stored := &modelv1.ModelBox{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(box), stored); err != nil {
			t.Fatal(err)
		}
		written := len(stored.Status.Conditions) > 0 && stored.Status.Conditions[0].Message == fmt.Sprint(kind.state)
		if !written && kind.state > 0 && (due.IsZero() || due.After(changed.Add(time.Second))) {
			t.Fatalf("state %d of %s is not written, and the next reconcile is at %s", kind.state, changed, due)
		}
		if most := 10 + int(clk.Since(at(0).Time)/time.Second); writes > most {
			t.Fatalf("%d writes after %s", writes, clk.Since(at(0).Time))
		}
	}
	if deferred < 100 {
		t.Errorf("the limit was reached %d times only", deferred)
	}
}
