// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/api"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// united returns a UnitedDeployment that was created in a second, and not yet if that is negative.
func united(namespace, name string, second int64, target string) *extensionv1.UnitedDeployment {
	ud := &extensionv1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), ResourceVersion: "1"}}
	ud.Spec.DeploymentName = target
	if second >= 0 {
		ud.CreationTimestamp = metav1.NewTime(time.Unix(second, 0))
	}
	return ud
}

func targetOf(t *testing.T, objects ...client.Object) *Target[*extensionv1.UnitedDeployment] {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	target := &Target[*extensionv1.UnitedDeployment]{
		List: func() client.ObjectList { return &extensionv1.UnitedDeploymentList{} },
		Name: func(ud *extensionv1.UnitedDeployment) string { return ud.Spec.DeploymentName },
	}
	target.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&extensionv1.UnitedDeployment{}, indexTarget, func(obj client.Object) []string { return []string{target.nameOf(obj)} }).Build()
	return target
}

func TestOldest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		stored []client.Object
		want   string
	}{
		{"none", nil, ""},
		{"none of this Deployment", []client.Object{united("team", "a", 1, "db"), united("other", "b", 1, "web")}, ""},
		{"by creation", []client.Object{united("team", "a", 3, "web"), united("team", "b", 2, "web"), united("team", "c", 4, "web"), united("team", "d", 1, "db")}, "b"},
		{"of one second by uid", []client.Object{united("team", "b", 1, "web"), united("team", "a", 1, "web")}, "a"},
	} {
		oldest, found, err := targetOf(t, test.stored...).Oldest(t.Context(), "team", "web")
		if err != nil || found != (test.want != "") || found && oldest.Name != test.want {
			t.Errorf("%s: the oldest is %v, %v, %v; want %q", test.name, oldest, found, err, test.want)
		}
	}
	if stored, unstored := united("team", "b", 9, "web"), united("team", "a", -1, "web"); Older(unstored, stored) || !Older(stored, unstored) {
		t.Error("an object that is not stored yet is not the youngest")
	}
}

// enqueued returns the names that a handler enqueues for a function.
func enqueued(t *testing.T, call func(workqueue.TypedRateLimitingInterface[reconcile.Request])) []string {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	call(queue)
	var names []string
	for queue.Len() > 0 {
		request, _ := queue.Get()
		names = append(names, request.String())
	}
	slices.Sort(names)
	return names
}

func TestHandlers(t *testing.T) {
	t.Parallel()
	target := targetOf(t, united("team", "a", 1, "web"), united("team", "b", 2, "web"), united("team", "c", 3, "db"), united("other", "a", 1, "web"))
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	rivals := EnqueueRivals(target, target)
	for _, test := range []struct {
		name string
		call func(queue)
		want []string
	}{
		{"a Deployment", func(q queue) { target.EnqueueNamed().Delete(t.Context(), event.DeleteEvent{Object: web}, q) }, []string{"team/a", "team/b"}},
		{"a new rival", func(q queue) {
			rivals.Create(t.Context(), event.CreateEvent{Object: united("team", "new", 0, "web")}, q)
		}, []string{"team/a", "team/b"}},
		{"a rival that goes from one Deployment to another", func(q queue) {
			rivals.Update(t.Context(), event.UpdateEvent{ObjectOld: united("team", "x", 0, "web"), ObjectNew: united("team", "x", 0, "db")}, q)
		}, []string{"team/a", "team/b", "team/c"}},
		{"one that acts on none", func(q queue) {
			rivals.Create(t.Context(), event.CreateEvent{Object: united("team", "new", 0, "")}, q)
		}, nil},
	} {
		if diff := cmp.Diff(test.want, enqueued(t, test.call)); diff != "" {
			t.Errorf("%s enqueues (-want +got):\n%s", test.name, diff)
		}
	}
}

// changed returns a copy of an object with another version and a change.
func changed[T client.Object](obj T, change func(T)) T {
	out := obj.DeepCopyObject().(T)
	out.SetResourceVersion(obj.GetResourceVersion() + "0")
	change(out)
	return out
}

func TestPredicatesOfUpdates(t *testing.T) {
	t.Parallel()
	owner := &metav1.ObjectMeta{Name: "box", UID: "1"}
	kind := modelv1.SchemeGroupVersion.WithKind("ModelBox")
	foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "box", UID: "d", ResourceVersion: "1"}}
	child := foreign.DeepCopy()
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
	ud := united("team", "a", 1, "web")
	same := func(*appsv1.Deployment) {}
	passing := map[string]predicate.Predicate{
		"changed": predicate.ResourceVersionChangedPredicate{}, "child": ChildChanged(kind.GroupKind()), "retargeted": targetOf(t).Retargeted(),
	}
	for _, test := range []struct {
		name          string
		before, after client.Object
		// want are the predicates that the update passes.
		want []string
	}{
		{"a resync", ud, ud, nil},
		{"a status", ud, changed(ud, func(u *extensionv1.UnitedDeployment) { u.Status.Replicas++ }), []string{"changed"}},
		{"another target", ud, changed(ud, func(u *extensionv1.UnitedDeployment) { u.Spec.DeploymentName = "db" }), []string{"changed", "retargeted"}},
		{"created again", ud, changed(ud, func(u *extensionv1.UnitedDeployment) { u.UID = "other" }), []string{"changed", "child", "retargeted"}},
		{"a resync of a child", child, child, nil},
		{"a child", child, changed(child, same), []string{"changed", "child"}},
		{"a foreign object", foreign, changed(foreign, same), []string{"changed"}},
		{"a child that is released", child, changed(child, func(d *appsv1.Deployment) { d.OwnerReferences = nil }), []string{"changed", "child"}},
		{"an object that becomes a child", foreign, changed(foreign, func(d *appsv1.Deployment) { d.OwnerReferences = child.OwnerReferences }), []string{"changed", "child"}},
	} {
		var got []string
		for _, name := range slices.Sorted(maps.Keys(passing)) {
			_, united := test.before.(*extensionv1.UnitedDeployment)
			if (united || name != "retargeted") && passing[name].Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}) {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s passes (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestUntil(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		wake time.Time
		want time.Duration
	}{
		{time.Time{}, 0},
		{now.Add(-time.Hour), time.Millisecond},
		{now, time.Millisecond},
		{now.Add(time.Minute), time.Minute},
		{now.AddDate(200, 0, 0), Longest},
	} {
		if got := Until(test.wake, now); got != test.want {
			t.Errorf("Until(%v) is %v, want %v", test.wake, got, test.want)
		}
	}
}

func TestSooner(t *testing.T) {
	t.Parallel()
	for _, row := range [][3]time.Duration{{0, 0, 0}, {0, 1, 1}, {1, 0, 1}, {2, 1, 1}, {1, 2, 1}} {
		if got := Sooner(row[0], row[1]); got != row[2] {
			t.Errorf("Sooner(%d, %d) is %d", row[0], row[1], got)
		}
	}
}
