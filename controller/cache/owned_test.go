// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/modelbox-operator/modelbox-operator/api"
)

// ours is a Deployment as the API server returns it: an entry of ours for its image, one of its
// variables, its arguments and its labels, and a container of another client.
func ours() *appsv1.Deployment {
	fields := `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:name":{},"f:image":{},"f:args":{},` +
		`"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}}}}}}}}`
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Labels: map[string]string{"a": "1"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: api.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)}},
	}}
	d.Spec.Replicas = new(int32(2))
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "main", Image: "a:1", Args: []string{"x", "y"}, Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
	}}
	return d
}

func main(d *appsv1.Deployment) *corev1.Container {
	for i := range d.Spec.Template.Spec.Containers {
		if d.Spec.Template.Spec.Containers[i].Name == "main" {
			return &d.Spec.Template.Spec.Containers[i]
		}
	}
	return nil
}

func TestStored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit    func(*appsv1.Deployment)
		differs bool
	}{
		"image":                     {func(d *appsv1.Deployment) { main(d).Image = "b:1" }, true},
		"replicas":                  {func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) }, true},
		"an argument":               {func(d *appsv1.Deployment) { main(d).Args = []string{"y", "x"} }, true},
		"a label":                   {func(d *appsv1.Deployment) { d.Labels["a"] = "2" }, true},
		"a label is removed":        {func(d *appsv1.Deployment) { delete(d.Labels, "a") }, true},
		"a variable":                {func(d *appsv1.Deployment) { main(d).Env[0].Value = "3" }, true},
		"a variable twice":          {func(d *appsv1.Deployment) { main(d).Env = append(main(d).Env, corev1.EnvVar{Name: "A", Value: "1"}) }, true},
		"another order":             {func(d *appsv1.Deployment) { e := main(d).Env; e[0], e[1] = e[1], e[0] }, true},
		"a container is removed":    {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers = nil }, true},
		"managedFields are removed": {func(d *appsv1.Deployment) { d.ManagedFields = nil }, true},
		"a field changes its manager": {func(d *appsv1.Deployment) {
			d.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)
		}, true},
		"a sidecar in front": {func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "sidecar"}}, d.Spec.Template.Spec.Containers...)
		}, false},
		"another variable between ours": {func(d *appsv1.Deployment) {
			e := main(d).Env
			main(d).Env = []corev1.EnvVar{e[0], {Name: "C", Value: "3"}, e[1]}
		}, false},
		"a field of another manager": {func(d *appsv1.Deployment) { d.Spec.Template.Spec.HostNetwork = true }, false},
		"a restart": {func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{api.AnnotationRestartedAt: "2026-01-02T03:04:05Z"}
		}, false},
		"an entry of another manager": {func(d *appsv1.Deployment) {
			d.ManagedFields = append(d.ManagedFields, metav1.ManagedFieldsEntry{Manager: "x", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:paused":{}}}`)})
		}, false},
		"status": {func(d *appsv1.Deployment) { d.Status.Replicas = 7 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edited := ours()
			test.edit(edited)
			if differs := Stored(edited) != Stored(ours()); differs != test.differs {
				t.Errorf("the hash differs: %v, want %v", differs, test.differs)
			}
		})
	}
}

// The response to a write and an object of the cache must have one hash, and so must an object with
// and one without a Go type.
func TestStoredIsTheSameInEachForm(t *testing.T) {
	t.Parallel()
	want := Stored(ours())
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ours())
	if err != nil {
		t.Fatal(err)
	}
	if got := Stored(&unstructured.Unstructured{Object: content}); got != want || want == "" {
		t.Errorf("without a Go type the hash is %q, with it %q", got, want)
	}
	once := trimmed(t, ours())
	twice := trimmed(t, once.DeepCopy())
	if Stored(once) != want || Stored(twice) != want || len(once.Spec.Template.Spec.Containers) > 0 {
		t.Errorf("in the cache the hash is %q and %q, want %q", Stored(once), Stored(twice), want)
	}
	foreign := &appsv1.Deployment{}
	if got := Stored(trimmed(t, foreign)); got != "" {
		t.Errorf("an object of others has the hash %q", got)
	}
}

// Only a client that writes under our name can make such entries.
func TestStoredOfForgedEntries(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{
		``, `1`, `[]`, `{"f:spec":1}`, `{"v:1":{}}`, `{"i:0":{}}`, `{"k:{}":{}}`, `{"f:spec":{"k:{\"x\":{}}":{}}}`, `{"f:metadata":{"i:3":{}}}`,
		`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"i:0":{},"v:\"x\"":{},"k:{\"image\":\"a:1\"}":{},"k:{\"name\":1}":{},"k:{\"nothing\":null}":{}}}}}}`,
	} {
		d := ours()
		d.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(fields)
		if a, b := Stored(d), Stored(d.DeepCopy()); a != b {
			t.Errorf("%s: two hashes, %q and %q", fields, a, b)
		}
	}
}

func BenchmarkStored(b *testing.B) {
	d := ours()
	b.ReportAllocs()
	for b.Loop() {
		Stored(d)
	}
}
