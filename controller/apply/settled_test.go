// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// The hash of a desired object is the same in all versions of the controller: an upgrade to
// one with another hash would write every child again.
func TestHashIsTheSameInAllVersions(t *testing.T) {
	t.Parallel()
	named := metav1.ObjectMeta{Namespace: "default", Name: "box", Labels: map[string]string{"b": "2", "a": "1", "c": "3"}}
	selector := &metav1.LabelSelector{MatchLabels: named.Labels}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: named.Labels}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "server:1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}}}},
	}}
	children := childTypes()
	*children[0].(*appsv1.Deployment) = appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(2)), Selector: selector, Template: template,
	}}
	*children[1].(*appsv1.DaemonSet) = appsv1.DaemonSet{ObjectMeta: named, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}
	*children[2].(*corev1.Service) = corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{
		Selector: named.Labels, Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
	}}
	for i, want := range []string{"89c54651cccefeadcc614db9df34dec4", "9cb1df0f4518bbd67519402d9ff248ee", "5cd12b3ad1d290933e14aceecdb3c39b"} {
		for range 3 { // Maps have no order.
			child := children[i].DeepCopyObject().(client.Object)
			if got, err := hashOf(child); err != nil || got != want {
				t.Errorf("the hash of the %s is %s, want %s: %v", kinds.KindOf(child), got, want, err)
			}
		}
	}
}

// Of a kind that has no Go type here, the hash is that of its JSON, in which keys are sorted.
func TestHashOfAnUntypedObject(t *testing.T) {
	t.Parallel()
	of := func(hosts ...any) string {
		obj := &unstructured.Unstructured{Object: map[string]any{"kind": "HTTPRoute", "spec": map[string]any{"hostnames": hosts, "a": "b"}}}
		hash, err := hashOf(obj)
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	const want = "ed387525876f5b4be44dd1d131183a86"
	if got := of("a.example"); got != want {
		t.Errorf("the hash is %s, want %s", got, want)
	}
	if of("b.example") == want {
		t.Error("another object has the same hash")
	}
}
