// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"path/filepath"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
)

// What the operator makes is allowed, for every block and every form of it.
func TestChildrenAroundThePodsAreAllowed(t *testing.T) {
	w := newWalker(t)
	installCRDs(t)
	paths := map[string]string{}
	for _, of := range readController(t).Children {
		paths[of.Kind] = filepath.Clean(of.Path)
	}
	port, percent, number := new(intstr.FromInt32(8080)), new(intstr.FromString("50%")), new(intstr.FromInt32(2))
	query := &modelv1.PrometheusQuery{ServerAddress: "http://p:9090", Query: "up", Target: resource.MustParse("1"), CooldownSeconds: new(int32(60))}
	several := &modelv1.PrometheusQuery{
		ServerAddress: "http://p:9090", Query: "up", Target: resource.MustParse("1"), IdleReplicas: new(int32(0)),
		AdditionalQueries: []modelv1.AdditionalQuery{{Query: "down", Target: resource.MustParse("2")}},
	}
	shares := []modelv1.RouteShare{{Name: "a", Weight: 20}, {Name: "b", Weight: 20}, {Name: "c", Weight: 20}, {Name: "d", Weight: 40}}
	behavior := &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(60))}}
	gateway := modelv1.GatewayReference{Name: "public", Namespace: "infra", Listener: "https"}
	owner := metav1.OwnerReference{
		APIVersion: "app.huolala.cn/v1", Kind: "App", Name: "made", UID: "6a1e2c55-0000-4000-8000-000000000000",
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
	made := 0
	for _, selector := range []labels.Set{{"app.kubernetes.io/name": "app", "app.kubernetes.io/instance": "made"}, {"app": "adopted"}} {
		for _, blocks := range []*modelv1.Children{
			{Disruption: &modelv1.Disruption{MaxUnavailable: percent}},
			{Disruption: &modelv1.Disruption{MinAvailable: number}},
			{Disruption: &modelv1.Disruption{MinAvailable: new(intstr.FromString("100%"))}},
			{Autoscaling: &modelv1.Autoscaling{MaxReplicas: 3, Behavior: behavior}},
			{Autoscaling: &modelv1.Autoscaling{MaxReplicas: 3, MinReplicas: new(int32(0)), Prometheus: query, Behavior: behavior}},
			{Autoscaling: &modelv1.Autoscaling{MaxReplicas: 3, Prometheus: several}},
			{Route: &modelv1.Route{Hosts: []modelv1.Host{"a.example.com"}, Path: "/v1", Gateway: gateway}},
			{Route: &modelv1.Route{Hosts: []modelv1.Host{"a.example.com"}, Gateway: gateway, Split: shares}},
			{Monitoring: &modelv1.Monitoring{Interval: "30s"}},
			{Monitoring: &modelv1.Monitoring{Port: port}},
		} {
			for _, child := range children.Of(&children.Object{
				Children: blocks, Replicas: 3, Ports: []modelv1.Port{{Name: "http", Port: 80}},
				Owner: appv1.SchemeGroupVersion.WithKind("App"), Selector: selector,
				Meta: metav1.ObjectMeta{
					Name: "made", Namespace: elsewhere, OwnerReferences: []metav1.OwnerReference{owner},
					Labels: map[string]string{"app.kubernetes.io/managed-by": "modelbox-operator"},
				},
			}) {
				made++
				body := encode(t, child)
				if _, err := w.send(t.Context(), "POST", paths[child.GetObjectKind().GroupVersionKind().Kind], "", body); err != nil {
					t.Errorf("%s: %v", body, err)
				}
			}
		}
	}
	if made != 20 {
		t.Errorf("%d children were made", made)
	}
}

// A write through a subresource changes no other field of the spec, whatever it has.
func TestSubresourcesChangeNoOtherField(t *testing.T) {
	t.Parallel()
	stored := admin(t)
	c := user(t, "subresources", nil, "", []rbacv1.PolicyRule{ruleOf("model.github.com * *")})
	if _, err := modelBox.in(stored, c.namespace).Create(t.Context(), modelBox.object("a", modelBox.spec), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"spec":{"image":"evil:1","podTemplate":{"spec":{"hostNetwork":true}}},"status":{"replicas":1}}`)
	for _, sub := range []string{"status", "scale"} {
		if _, err := modelBox.in(c, c.namespace).Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}, sub); err != nil {
			t.Log(sub, err) // Either answer is correct.
		}
		now, err := modelBox.in(stored, c.namespace).Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		image, _, _ := unstructured.NestedString(now.Object, "spec", "image")
		_, template, _ := unstructured.NestedMap(now.Object, "spec", "podTemplate")
		if image != "nginx:1" || template {
			t.Errorf("through %s the spec became %v", sub, now.Object["spec"])
		}
	}
}
