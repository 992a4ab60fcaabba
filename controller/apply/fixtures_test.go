// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func deployment(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	d.Name, d.Namespace = "box", "default"
	d.Labels = map[string]string{"a": "b"}
	d.Spec.Replicas = new(int32(2))
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name:  "main",
		Image: "server:1",
		Args:  []string{"--a", "--b"},
		Env:   []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
		Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		},
	}}
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	for _, c := range change {
		c(d)
	}
	return d
}

// childTypes returns an empty object of each type of child, with TypeMeta.
func childTypes() []client.Object {
	deployment, daemonSet, service := &appsv1.Deployment{}, &appsv1.DaemonSet{}, &corev1.Service{}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	daemonSet.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
	service.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	return []client.Object{deployment, daemonSet, service}
}
