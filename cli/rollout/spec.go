// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
)

// Apply returns a copy of an object with the changed fields of its spec, and the pod template
// that the operator makes of it. resourceType becomes the preset whose resources they are, and
// custom for others. An error is that of the rules.
func Apply(kind *kinds.Kind, obj *unstructured.Unstructured, spec map[string]any) (*unstructured.Unstructured, *corev1.PodTemplateSpec, error) {
	changed := obj.DeepCopy()
	for field, value := range spec {
		set(changed, field, value)
	}
	_, resources := spec["resources"]
	if !resources || kind != kinds.ModelBox() {
		template, err := Template(kind, changed)
		return changed, template, err
	}
	var err error
	for _, preset := range []modelv1.ResourceType{
		typeOf(obj), modelv1.ResourceTypeSmall, modelv1.ResourceTypeMedium, modelv1.ResourceTypeLarge, modelv1.ResourceTypeCustom,
	} {
		set(changed, "resourceType", string(preset))
		var template *corev1.PodTemplateSpec
		if template, err = Template(kind, changed); err == nil {
			return changed, template, nil
		}
	}
	return nil, nil, err
}

func typeOf(obj *unstructured.Unstructured) modelv1.ResourceType {
	text, _, _ := unstructured.NestedString(obj.Object, "spec", "resourceType") // The schema says that it is a string.
	return modelv1.ResourceType(text)
}

func set(obj *unstructured.Unstructured, field string, value any) {
	spec, _ := obj.Object["spec"].(map[string]any)
	if value == nil {
		delete(spec, field)
		return
	}
	spec[field] = value
}

// Template returns the pod template that the operator makes of an object with the spec of obj,
// with the defaults of the API server. An error is that of the rules of admission.
func Template(kind *kinds.Kind, obj *unstructured.Unstructured) (*corev1.PodTemplateSpec, error) {
	clean := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": obj.GetName()}, "spec": obj.Object["spec"]}}
	clean.SetGroupVersionKind(kind.GVK)
	body, err := json.Marshal(clean.Object)
	if err != nil {
		return nil, err
	}
	resp := create.Dry(kind, create.Request{Body: body, Namespace: metav1.NamespaceDefault, Validation: metav1.FieldValidationIgnore})
	if err := resp.Err(); err != nil {
		return nil, fmt.Errorf("object is no longer valid: %w", err)
	}
	children, err := render.New(kind, resp.Object, metav1.NamespaceDefault).Children("")
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		if deployment, ok := child.(*appsv1.Deployment); ok {
			completed := &corev1.PodTemplate{Template: deployment.Spec.Template}
			corev1defaults.SetObjectDefaults_PodTemplate(completed)
			return &completed.Template, nil
		}
	}
	return nil, fmt.Errorf("a %s has no Deployment", kind.GVK.Kind)
}
