// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedules

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/api"
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/freeze"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/test/fakeserver"
)

// fixture is an object with one controller, without faults, that counts its writes.
type fixture struct {
	t      *testing.T
	server *server
	client *fakeserver.Client
	clock  *clocktesting.FakePassiveClock
	writes int
}

func newFixture(t *testing.T, of kind, replicas int32, specs ...modelv1.Schedule) *fixture {
	t.Helper()
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	f := &fixture{t: t, server: newServer(of, specs, replicas, now), clock: clocktesting.NewFakePassiveClock(now)}
	f.server.Written = func(string, client.Object, client.Object) {}
	f.client = f.server.client(func(do func() error) error {
		f.writes++
		return do()
	})
	return f
}

// reconcile reconciles until nothing changes, and returns the last result and the number of writes.
func (f *fixture) reconcile() (result reconcile.Result, writes int) {
	f.t.Helper()
	f.writes = 0
	for version := -1; version != f.server.Version(); {
		version = f.server.Version()
		f.server.kind.sync(f.client)
		var err error
		result, err = f.server.kind.reconciler(f.server, f.client, f.clock).Reconcile(f.t.Context(), reconcile.Request{NamespacedName: key})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	return result, f.writes
}

var (
	day   = modelv1.Schedule{Name: "day", Schedule: "0 8 * * *", Replicas: 6}
	night = modelv1.Schedule{Name: "night", Schedule: "0 20 * * *", Replicas: 1}
)

// TestWrites has the writes of a year, for each kind: two of status and one of scale for a time,
// and none between times.
func TestWrites(t *testing.T) {
	t.Parallel()
	for _, of := range kinds {
		f := newFixture(t, of, 1, day, night)
		for _, step := range []struct {
			name     string
			at       time.Time
			change   func(*server)
			replicas int32
			writes   int
			wake     time.Duration
		}{
			{"the last time that has passed", f.clock.Now(), nil, 6, 3, 5 * time.Minute},
			{"between times", f.clock.Now().Add(7*time.Hour + 58*time.Minute), nil, 6, 0, 2 * time.Minute},
			{"kubectl scale", f.clock.Now().Add(7*time.Hour + 59*time.Minute), func(s *server) { s.change([]modelv1.Schedule{day, night}, 3) }, 3, 0, time.Minute},
			{"the next time", f.clock.Now().Add(8 * time.Hour), nil, 1, 3, 5 * time.Minute},
			{"a year later, one time", f.clock.Now().Add(366 * 24 * time.Hour), nil, 6, 3, 5 * time.Minute},
			{"a number that is there already", f.clock.Now().Add(366*24*time.Hour + 8*time.Hour), func(s *server) { s.change([]modelv1.Schedule{day, night}, 1) }, 1, 1, 5 * time.Minute},
			{"no schedules", f.clock.Now().Add(366*24*time.Hour + 9*time.Hour), func(s *server) { s.change(nil, 1) }, 1, 1, 0},
			{"no schedules, at rest", f.clock.Now().Add(400 * 24 * time.Hour), nil, 1, 0, 0},
		} {
			f.clock.SetTime(step.at)
			if step.change != nil {
				step.change(f.server)
			}
			result, writes := f.reconcile()
			if is := f.server.object(); is.Replicas != step.replicas || writes != step.writes || result.RequeueAfter != step.wake {
				t.Errorf("%s, %s: %d replicas, %d writes, again in %v; want %d, %d, %v", is.Kind.Kind, step.name,
					is.Replicas, writes, result.RequeueAfter, step.replicas, step.writes, step.wake)
			}
		}
	}
}

// TestFrozen: while the namespace is frozen, a time that is due waits and is looked for once a
// minute; afterwards the one that passed last applies.
func TestFrozen(t *testing.T) {
	t.Parallel()
	for _, of := range kinds {
		f := newFixture(t, of, 1, day, night)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Annotations: map[string]string{api.AnnotationFrozen: "end of the year"}}}
		live := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(namespace).Build()
		step := Step{Client: f.client, Recorder: &events.FakeRecorder{}, Clock: f.clock, Freeze: freeze.Reader{Live: live}}
		o := f.server.object()
		scaled, wake, err := step.Scale(t.Context(), o)
		if scaled || wake != time.Minute || !status.HasReason(err, status.ReasonFrozen) || f.writes != 0 || *o.Status != nil {
			t.Errorf("%s: scaled %t, again in %v, %d writes, status %+v: %v", o.Kind.Kind, scaled, wake, f.writes, *o.Status, err)
		}
		readiness, err := apply.ReadinessOf(err)
		if err != nil || !readiness.Reconciling || readiness.Reason != "Frozen" || !strings.Contains(readiness.Message, "end of the year") {
			t.Errorf("%s: %+v, %v", o.Kind.Kind, readiness, err)
		}
		f.clock.SetTime(f.clock.Now().Add(8 * time.Hour))
		_, writes := f.reconcile()
		if is := f.server.object(); writes != 1 || is.Replicas != 1 || (*is.Status).Name != "night" {
			t.Errorf("%s: after the freeze %d writes, %+v", o.Kind.Kind, writes, *is.Status)
		}
	}
}

// TestAutoscaled: an autoscaler of the object itself, and only that, is a conflict.
func TestAutoscaled(t *testing.T) {
	t.Parallel()
	for _, of := range kinds {
		for _, test := range []struct {
			name     string
			change   func(*autoscalingv2.CrossVersionObjectReference)
			conflict bool
		}{
			{"of this object", func(*autoscalingv2.CrossVersionObjectReference) {}, true},
			{"of another version", func(r *autoscalingv2.CrossVersionObjectReference) { r.APIVersion += "beta1" }, true},
			{"of another object", func(r *autoscalingv2.CrossVersionObjectReference) { r.Name = "other" }, false},
			{"of another kind", func(r *autoscalingv2.CrossVersionObjectReference) { r.Kind, r.APIVersion = "Deployment", "apps/v1" }, false},
		} {
			f := newFixture(t, of, 1, day)
			o := f.server.object()
			scaler := autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: o.Kind.GroupVersion().String(), Kind: o.Kind.Kind, Name: "web",
			}}}
			test.change(&scaler.Spec.ScaleTargetRef)
			f.client.Lists = func(list client.ObjectList) {
				list.(*autoscalingv2.HorizontalPodAutoscalerList).Items = []autoscalingv2.HorizontalPodAutoscaler{scaler}
			}
			step := Step{Client: f.client, Recorder: &events.FakeRecorder{}, Clock: f.clock}
			err := step.autoscaled(t.Context(), o)
			if status.HasReason(err, status.ReasonConflict) != test.conflict || err != nil && !test.conflict {
				t.Errorf("%s, %s: %v", o.Kind.Kind, test.name, err)
			}
			if !test.conflict {
				continue
			}
			scaled, wake, err := step.Scale(t.Context(), o)
			if scaled || wake != 5*time.Minute || !status.HasReason(err, status.ReasonConflict) || f.writes != 0 {
				t.Errorf("%s, %s: scaled %t, again in %v, %d writes: %v", o.Kind.Kind, test.name, scaled, wake, f.writes, err)
			}
		}
	}
}

// kind is what the tests need of a kind.
type kind struct {
	create     func() client.Object
	fields     func(client.Object) *Object
	set        func(o client.Object, schedules []modelv1.Schedule, replicas int32)
	stored     func(*fakeserver.Server) client.Object
	change     func(*fakeserver.Server, func(client.Object))
	sync       func(*fakeserver.Client)
	reconciler func(*server, *fakeserver.Client, *clocktesting.FakePassiveClock) reconcile.Reconciler
}

var kinds = []kind{
	kindOf(modelv1.SchemeGroupVersion.WithKind("ModelBox"), func(o *modelv1.ModelBox) (*[]modelv1.Schedule, **int32, **modelv1.ScheduleStatus) {
		return &o.Spec.Schedules, &o.Spec.Replicas, &o.Status.Schedule
	}),
	kindOf(appv1.SchemeGroupVersion.WithKind("App"), func(o *appv1.App) (*[]modelv1.Schedule, **int32, **modelv1.ScheduleStatus) {
		return &o.Spec.Schedules, &o.Spec.Replicas, &o.Status.Schedule
	}),
	kindOf(extensionv1.SchemeGroupVersion.WithKind("UnitedDeployment"), func(o *extensionv1.UnitedDeployment) (*[]modelv1.Schedule, **int32, **modelv1.ScheduleStatus) {
		return &o.Spec.Schedules, &o.Spec.Replicas, &o.Status.Schedule
	}),
}

func kindOf[T status.Object](gvk schema.GroupVersionKind, of func(T) (*[]modelv1.Schedule, **int32, **modelv1.ScheduleStatus)) kind {
	fields := func(o client.Object) *Object {
		schedules, replicas, status := of(o.(T))
		return &Object{Object: o, Kind: gvk, Schedules: *schedules, Replicas: **replicas, Status: status}
	}
	return kind{
		create: func() client.Object { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) },
		fields: fields,
		set: func(o client.Object, schedules []modelv1.Schedule, replicas int32) {
			into, count, _ := of(o.(T))
			*into, *count = schedules, &replicas
		},
		stored: func(s *fakeserver.Server) client.Object { return fakeserver.Stored[T](s) },
		change: func(s *fakeserver.Server, how func(client.Object)) { fakeserver.Change(s, func(o T) { how(o) }) },
		sync:   fakeserver.Sync[T],
		reconciler: func(s *server, c *fakeserver.Client, clk *clocktesting.FakePassiveClock) reconcile.Reconciler {
			step := Step{Client: c, Recorder: &events.FakeRecorder{}, Clock: clk}
			return status.NewReconciler(c, step.Recorder, &holder[T]{step, &s.held, fields}, status.Options{})
		},
	}
}

// holder is the reconciler of a kind that does nothing but the step.
type holder[T status.Object] struct {
	step Step
	held *bool
	of   func(client.Object) *Object
}

func (r *holder[T]) Reconcile(ctx context.Context, obj T, writer *status.Writer) (reconcile.Result, error) {
	o := r.of(obj)
	o.Held, o.Writer = *r.held, writer
	_, wake, err := r.step.Scale(ctx, o)
	return reconcile.Result{RequeueAfter: wake}, err
}

// server is an API server with one object of a kind.
type server struct {
	fakeserver.Server
	kind kind
	held bool
}

func newServer(of kind, schedules []modelv1.Schedule, replicas int32, now time.Time) *server {
	s := &server{kind: of}
	o := of.create()
	o.SetNamespace("default")
	o.SetName("web")
	o.SetUID("u")
	o.SetGeneration(1)
	o.SetCreationTimestamp(metav1.NewTime(now.Add(-time.Hour)))
	of.set(o, schedules, replicas)
	s.Store(o)
	return s
}

// client returns a client whose cache is up to date.
func (s *server) client(write func(do func() error) error) *fakeserver.Client {
	c := &fakeserver.Client{Server: &s.Server, Write: write}
	s.kind.sync(c)
	return c
}

// object returns a copy of the stored object.
func (s *server) object() *Object {
	return s.kind.fields(s.kind.stored(&s.Server).DeepCopyObject().(client.Object))
}

// change sets the schedules and the replicas as another client does.
func (s *server) change(schedules []modelv1.Schedule, replicas int32) {
	s.kind.change(&s.Server, func(o client.Object) { s.kind.set(o, schedules, replicas) })
}

var key = client.ObjectKey{Namespace: "default", Name: "web"}
