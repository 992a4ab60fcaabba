// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
)

// withAnnotations sets the annotations of a Deployment to pairs of key and value.
func withAnnotations(pairs ...string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			d.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func withName(name string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Name = name }
}

func TestBound(t *testing.T) {
	const yes = mtsrev1.AnnotationEru
	for _, test := range []struct {
		name       string
		deployment *appsv1.Deployment
		want       *mtsrev1.EruSpec
		errs       []string
	}{
		{"no annotation", web(), nil, nil},
		{"false", web(withAnnotations(yes, "false", mtsrev1.AnnotationSchedule, "nonsense")), nil, nil},
		{"true", web(withAnnotations(yes, "true")), &mtsrev1.EruSpec{DeploymentName: "web"}, nil},
		{"all annotations", web(withAnnotations(yes, "true", mtsrev1.AnnotationSchedule, "@hourly", mtsrev1.AnnotationTimeZone, "Asia/Shanghai", mtsrev1.AnnotationEnabled, "true")),
			&mtsrev1.EruSpec{DeploymentName: "web", Enabled: true, Schedule: "@hourly", TimeZone: "Asia/Shanghai"}, nil},
		{"in double quotes", web(withAnnotations(yes, `"true"`, mtsrev1.AnnotationSchedule, `"0 3 * * *"`, mtsrev1.AnnotationTimeZone, `"Asia/Shanghai"`, mtsrev1.AnnotationEnabled, `"true"`)),
			&mtsrev1.EruSpec{DeploymentName: "web", Enabled: true, Schedule: "0 3 * * *", TimeZone: "Asia/Shanghai"}, nil},
		{"in one double quote, or in two pairs", web(withAnnotations(yes, "true", mtsrev1.AnnotationSchedule, `""@daily""`, mtsrev1.AnnotationTimeZone, `"`, mtsrev1.AnnotationEnabled, `"true`)),
			&mtsrev1.EruSpec{DeploymentName: "web", Schedule: `"@daily"`, TimeZone: `"`},
			[]string{mtsrev1.AnnotationEnabled, mtsrev1.AnnotationSchedule, mtsrev1.AnnotationTimeZone}},
		{"disabled by annotation", web(withAnnotations(yes, "true", mtsrev1.AnnotationEnabled, "false")), &mtsrev1.EruSpec{DeploymentName: "web"}, nil},
		{"yes", web(withAnnotations(yes, "yes")), nil, []string{yes}},
		{"several invalid values", web(withAnnotations(yes, "true", mtsrev1.AnnotationSchedule, "0 0 30 2 *", mtsrev1.AnnotationTimeZone, "", mtsrev1.AnnotationEnabled, "True"), withName("a.b")),
			&mtsrev1.EruSpec{DeploymentName: "a.b", Schedule: "0 0 30 2 *"},
			[]string{"metadata.name", mtsrev1.AnnotationEnabled, mtsrev1.AnnotationSchedule, mtsrev1.AnnotationTimeZone}},
		{"a name of 64 characters", web(withAnnotations(yes, "true"), withName(strings.Repeat("a", 64))),
			&mtsrev1.EruSpec{DeploymentName: strings.Repeat("a", 64)}, []string{"metadata.name"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			obj, errs := desiredEru(test.deployment)
			if (obj == nil) != (test.want == nil) {
				t.Fatalf("the Eru is %v, want %v", obj, test.want)
			}
			if len(errs) != len(test.errs) {
				t.Fatalf("errors are %v, want them at %v", errs, test.errs)
			}
			for i, part := range test.errs {
				if !strings.Contains(errs[i].Field, part) {
					t.Errorf("error %d is at %s, want it at %s", i, errs[i].Field, part)
				}
			}
			if obj == nil {
				return
			}
			if diff := cmp.Diff(*test.want, obj.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			eru.Default(obj)
			if refused := len(eru.Validate(obj)) > 0; refused && len(errs) == 0 {
				t.Errorf("admission would refuse it: %v", eru.Validate(obj))
			}
		})
	}
}

// bind reconciles a Deployment and returns the events.
func bind(w *fixture, name string) ([]string, error) {
	w.t.Helper()
	w.requests = nil
	b := &Binder{Client: w.client, Live: w.client, Recorder: w.events}
	_, err := reconcile.AsReconciler(b.Client, b).Reconcile(w.t.Context(),
		reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}})
	var events []string
	for len(w.events.Events) > 0 {
		events = append(events, <-w.events.Events)
	}
	return events, err
}

// The Eru of a deleted Deployment with the same name is not changed. When the garbage
// collector has deleted it, a new one is created.
func TestANewEruIsCreatedForARecreatedDeployment(t *testing.T) {
	w := newFixture(t, web(withAnnotations(mtsrev1.AnnotationEru, "true")))
	if _, err := bind(w, "web"); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Delete(t.Context(), w.deployment()); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Create(t.Context(), web(withAnnotations(mtsrev1.AnnotationEru, "true"), func(d *appsv1.Deployment) { d.UID = "second" })); err != nil {
		t.Fatal(err)
	}
	if _, err := bind(w, "web"); err != nil {
		t.Fatal(err)
	}
	w.expectWrites()
	if err := w.client.Delete(t.Context(), w.eru()); err != nil {
		t.Fatal(err)
	}
	if _, err := bind(w, "web"); err != nil {
		t.Fatal(err)
	}
	if got := w.eru().OwnerReferences[0].UID; got != "second" {
		t.Errorf("the Eru belongs to %s, want the second Deployment", got)
	}
}

func TestNoEruIsCreated(t *testing.T) {
	finalizer := func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/wait"} }
	for _, test := range []struct {
		name       string
		deployment *appsv1.Deployment
		events     []string // the beginning of the event, and a part of it
	}{
		{"no annotation", web(), nil},
		{"being deleted", web(withAnnotations(mtsrev1.AnnotationEru, "true"), finalizer, deleting), nil},
		{"a name with dots", web(withAnnotations(mtsrev1.AnnotationEru, "true"), withName("a.b")), []string{"Warning NameNotAllowed", "create an Eru of another name"}},
		{"a schedule that never fires", web(withAnnotations(mtsrev1.AnnotationEru, "true", mtsrev1.AnnotationSchedule, "0 0 30 2 *")),
			[]string{"Warning InvalidAnnotation", "metadata.annotations[mtsre.meitu.com/schedule]"}},
		{"neither true nor false", web(withAnnotations(mtsrev1.AnnotationEru, "True")), []string{"Warning InvalidAnnotation", `supported values: "true", "false"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, test.deployment)
			events, err := bind(w, test.deployment.Name)
			if err != nil {
				t.Fatal(err)
			}
			w.expectWrites()
			if test.events == nil {
				if len(events) > 0 {
					t.Errorf("events are %q, want none", events)
				}
				return
			}
			if len(events) != 1 || !strings.HasPrefix(events[0], test.events[0]) || !strings.Contains(events[0], test.events[1]) {
				t.Errorf("events are %q, want one that begins with %q and contains %q", events, test.events[0], test.events[1])
			}
		})
	}
}

func TestCreateFails(t *testing.T) {
	erus := schema.GroupResource{Group: mtsrev1.GroupName, Resource: "erus"}
	terminating := apierrors.NewForbidden(erus, "web", errors.New("the namespace is being deleted"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, test := range []struct {
		name    string
		err     error
		retried bool
		event   string
	}{
		{"it exists already", apierrors.NewAlreadyExists(erus, "web"), false, ""},
		{"the namespace is being deleted", terminating, false, ""},
		{"forbidden", apierrors.NewForbidden(erus, "web", errors.New("quota")), true, "quota"},
		{"a cut connection", errors.New("connection reset"), true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, web(withAnnotations(mtsrev1.AnnotationEru, "true")))
			w.before = func(string) error { return test.err }
			events, err := bind(w, "web")
			if got := err != nil; got != test.retried {
				t.Errorf("the error is %v, want one: %t", err, test.retried)
			}
			if got := strings.Join(events, " "); (got == "") != (test.event == "") || !strings.Contains(got, test.event) {
				t.Errorf("events are %q, want %q", got, test.event)
			}
		})
	}
}

func TestBinderPredicates(t *testing.T) {
	yes := web(withAnnotations(mtsrev1.AnnotationEru, "true"))
	update := func(was, is client.Object) bool {
		return annotated.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is})
	}
	for _, test := range []struct {
		name string
		got  bool
		want bool
	}{
		{"a Deployment with the annotation is created", annotated.Create(event.CreateEvent{Object: yes}), true},
		{"another one is created", annotated.Create(event.CreateEvent{Object: web()}), false},
		{"it is annotated", update(web(), yes), true},
		{"its schedule is annotated", update(yes, web(withAnnotations(mtsrev1.AnnotationEru, "true", mtsrev1.AnnotationSchedule, "@daily"))), true},
		{"its rollout progresses", update(yes, web(withAnnotations(mtsrev1.AnnotationEru, "true"), rolling)), false},
		{"its annotation is removed", update(yes, web()), false},
		{"it was replaced, and the watch missed it", update(yes, web(withAnnotations(mtsrev1.AnnotationEru, "true"), func(d *appsv1.Deployment) { d.UID = "second" })), true},
	} {
		if test.got != test.want {
			t.Errorf("%s: it triggers a reconcile: %t, want %t", test.name, test.got, test.want)
		}
	}
}

// A stale cache may still have a deleted Deployment whose Eru the garbage collector has
// already deleted.
func TestNoEruIsCreatedForADeletedDeploymentInTheCache(t *testing.T) {
	cached := web(withAnnotations(mtsrev1.AnnotationEru, "true"))
	replaced := cached.DeepCopy()
	replaced.UID = "another"
	deleting := cached.DeepCopy()
	deleting.DeletionTimestamp, deleting.Finalizers = new(metav1.Now()), []string{"foregroundDeletion"}
	for name, live := range map[string][]client.Object{"deleted": nil, "replaced": {replaced}, "being deleted": {deleting}} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			b := &Binder{Client: w.client, Live: newFixture(t, live...).client, Recorder: w.events}
			if _, err := b.Reconcile(t.Context(), cached.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			w.expectWrites()
		})
	}
}
