// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

func trimmed[T client.Object](t *testing.T, obj T) T {
	t.Helper()
	out, err := Trim(obj)
	if err != nil {
		t.Fatal(err)
	}
	return out.(T)
}

// large returns metadata with as much as clients can write, by an owner of a kind.
func large(owner schema.GroupVersionKind) metav1.ObjectMeta {
	text := strings.Repeat("x", 250_000)
	meta := metav1.ObjectMeta{
		Name: "web", Namespace: "team", UID: "1", ResourceVersion: "2", Generation: 3,
		Labels:        map[string]string{api.LabelManagedBy: api.ManagedBy},
		Annotations:   map[string]string{"note": text, mtsrev1.AnnotationSchedule: text, corev1.LastAppliedConfigAnnotation: text},
		Finalizers:    []string{text},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x", FieldsV1: metav1.NewFieldsV1(`{}`)}},
	}
	for i := range 1000 {
		meta.Labels[fmt.Sprint("label-", i)] = "x"
		meta.OwnerReferences = append(meta.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: text[:100], Name: text[:1000], UID: "u"})
	}
	meta.OwnerReferences = append(meta.OwnerReferences, *metav1.NewControllerRef(&metav1.ObjectMeta{Name: text, UID: "o"}, owner))
	return meta
}

func TestAForeignObjectIsSmall(t *testing.T) {
	t.Parallel()
	meta := large(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: strings.Repeat("K", 100_000)})
	text := strings.Repeat("y", 100_000)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"note": text, api.AnnotationRestartedAt: text}}}
	for range 100 {
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: text})
	}
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": text}}, Template: template,
	}}
	for range 1000 {
		deployment.Status.Conditions = append(deployment.Status.Conditions, appsv1.DeploymentCondition{Type: "Available", Reason: text, Message: text})
	}
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta}
	scaler.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: text, Kind: text, Name: text}
	for _, obj := range []client.Object{
		deployment, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ExternalName: text}}, scaler,
		&metav1.PartialObjectMetadata{ObjectMeta: meta},
	} {
		out := trimmed(t, obj.DeepCopyObject().(client.Object))
		data, err := json.Marshal(out)
		if err != nil || len(data) > maxContent+3000 { // With the names of the fields, and of all counters.
			t.Errorf("%T takes %d bytes: %v", obj, len(data), err)
		}
		controller := metav1.GetControllerOf(out)
		if out.GetName() != "web" || out.GetUID() != "1" || out.GetResourceVersion() != "2" || out.GetGeneration() != 3 || controller == nil || controller.UID != "o" {
			t.Errorf("%T has lost its identity: %+v", obj, out)
		}
		if value := out.GetAnnotations()[mtsrev1.AnnotationSchedule]; !strings.HasSuffix(value, "...") {
			t.Errorf("%T has a schedule of %d bytes that does not say that it was cut", obj, len(value))
		}
	}
}

// What a UnitedDeployment, an Eru or the binder reads of a Deployment stays.
func TestAForeignDeploymentKeepsWhatIsRead(t *testing.T) {
	t.Parallel()
	want := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{mtsrev1.AnnotationEru: "true"}},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(3)), Paused: true, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, ReadyReplicas: 2, UpdatedReplicas: 3, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", Message: "it has progressed"},
		}},
	}
	want.Spec.Template.Annotations = map[string]string{api.AnnotationRestartedAt: "2026-01-02T03:04:05Z"}
	full := want.DeepCopy()
	want.SetSelfLink(nothingOwned)
	full.Labels, full.Annotations["note"] = map[string]string{"a": "b"}, "x"
	full.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "a:1"}}
	if diff := cmp.Diff(want, trimmed(t, full)); diff != "" {
		t.Errorf("trimmed (-want +got):\n%s", diff)
	}
}

// What is compared with its desired state stays whole: the HorizontalPodAutoscaler and the
// ScaledObject of spec.autoscaling. What is read of a child is there, whatever it has beside that.
func TestConditionsAreKept(t *testing.T) {
	t.Parallel()
	scaler := &autoscalingv2.HorizontalPodAutoscaler{}
	scaler.Spec.ScaleTargetRef.Name = "web"
	scaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScalingActive, Status: "False", Reason: "InvalidSelector", Message: "m"}}
	if diff := cmp.Diff(scaler.Status, trimmed(t, scaler.DeepCopy()).Status); diff != "" {
		t.Errorf("an autoscaler (-want +got):\n%s", diff)
	}
	condition := map[string]any{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "m", "observedGeneration": int64(3)}
	status := map[string]any{"conditions": []any{condition}, "parents": []any{map[string]any{"conditions": []any{condition}}}}
	route := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"rules": "x"}, "status": status}}
	route.SetName("web")
	got := trimmed(t, route.DeepCopy())
	if diff := cmp.Diff(status, got.Object["status"]); diff != "" || got.Object["spec"] != nil || got.GetName() != "web" {
		t.Errorf("a route (-want +got):\n%s", diff)
	}
}

func TestLongSpecsAreNotHeld(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return `{"image":"` + strings.Repeat("x", n) + `"}` }
	for name, test := range map[string]struct {
		spec, status, err string
	}{
		"short":       {`{"image":"a:1"}`, `{"replicas":1}`, ""},
		"long status": {`{"image":"a:1"}`, `{"selector":"` + strings.Repeat("x", rules.MaxBytes) + `"}`, ""},
		"too long":    {long(1_000_000), `{"replicas":1}`, "spec: has 1000012 bytes; at most 131072 are allowed"},
	} {
		in := &stored[modelv1.ModelBox]{}
		if err := json.Unmarshal(document(`,"annotations":{"a":"b"}`, `,"spec":`+test.spec+`,"status":`+test.status), in); err != nil {
			t.Fatal(err)
		}
		got := trimmed(t, trimmed(t, in))
		if held := len(got.Spec) + len(got.Status); held > rules.MaxBytes || got.Labels != nil || got.Annotations != nil {
			t.Errorf("%s: %d bytes are held, metadata %+v", name, held, got.ObjectMeta)
		}
		if _, err := Typed[*modelv1.ModelBox](got); (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
			t.Errorf("%s: %v", name, err)
		}
	}
}
