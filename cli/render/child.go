// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	appsv1defaults "k8s.io/kubernetes/pkg/apis/apps/v1"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KindOf returns the kind of a child. A client leaves it out of what it reads.
func KindOf(child client.Object) string { return reflect.TypeOf(child).Elem().Name() }

// NameOf returns the kind and the name of a child.
func NameOf(child client.Object) string { return KindOf(child) + "/" + child.GetName() }

// TemplateOf returns the pod template of a child, nil for a Service.
func TemplateOf(child client.Object) *corev1.PodTemplateSpec {
	switch child := child.(type) {
	case *appsv1.Deployment:
		return &child.Spec.Template
	case *appsv1.DaemonSet:
		return &child.Spec.Template
	}
	return nil
}

// SetDefaults sets the defaults of the API server in a child, which may be nil.
func SetDefaults(child client.Object) {
	switch child := child.(type) {
	case *appsv1.Deployment:
		appsv1defaults.SetObjectDefaults_Deployment(child)
	case *appsv1.DaemonSet:
		appsv1defaults.SetObjectDefaults_DaemonSet(child)
	case *corev1.Service:
		corev1defaults.SetObjectDefaults_Service(child)
	}
}
