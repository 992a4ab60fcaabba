// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render returns what becomes of a manifest: the object with its defaults, and the
// children that the operator creates for it.
package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsv1defaults "k8s.io/kubernetes/pkg/apis/apps/v1"
	autoscalingv2defaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
	domain "github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// Fetcher is what fetches models where the cluster does not say it: the image of this release.
var Fetcher = models.Fetcher{Image: version.ControllerImage}

// NoUID is the uid of an owner that does not exist yet. Nothing is stored with it.
const NoUID types.UID = "00000000-0000-0000-0000-000000000000"

// Children returns the children of an object as it would be stored, of which the pods fetch their
// model as fetcher says. Their controller references have the uid of the object. A kind without
// children has none.
func Children(kind *kinds.Kind, stored *unstructured.Unstructured, fetcher models.Fetcher) ([]client.Object, error) {
	if !kind.HasPods() {
		return nil, nil
	}
	owner := kind.New()
	if err := create.Into(stored, owner); err != nil {
		return nil, err
	}
	children, err := kind.Children(owner, fetcher)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", kind.GVK.Kind, stored.GetName(), err)
	}
	return children, nil
}

// Diff returns the unified diff of two objects as YAML, "" if they are equal. Either may be nil.
// Fields that change with every write are left out, and annotations that kubectl, the API server and
// the operator write for themselves.
func Diff(name string, before, after client.Object) (string, error) {
	from, err := document(before)
	if err != nil {
		return "", err
	}
	to, err := document(after)
	if err != nil {
		return "", err
	}
	return Unified(name+" (live)", name+" (desired)", from, to)
}

// Unified returns the unified diff of two texts, "" if they are equal.
func Unified(from, to, before, after string) (string, error) {
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: slices.Collect(strings.Lines(before)), B: slices.Collect(strings.Lines(after)), FromFile: from, ToFile: to, Context: 3,
	})
}

func document(obj client.Object) (string, error) {
	if obj == nil {
		return "", nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		return "", err
	}
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	delete(content, "status")
	u := &unstructured.Unstructured{Object: content}
	annotations := u.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key == corev1.LastAppliedConfigAnnotation || key == appsv1.DeprecatedTemplateGeneration || strings.HasPrefix(key, "model.github.com/")
	})
	if u.SetAnnotations(annotations); len(annotations) == 0 {
		u.SetAnnotations(nil)
	}
	text, err := yaml.Marshal(content)
	return string(text), err
}

// KindOf returns the kind of a child. A client leaves it out of what it reads.
func KindOf(child client.Object) string { return domain.KindOf(child) }

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
	case *autoscalingv2.HorizontalPodAutoscaler:
		autoscalingv2defaults.SetObjectDefaults_HorizontalPodAutoscaler(child)
	}
}
