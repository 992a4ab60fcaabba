// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"fmt"
	"maps"

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

// Apply returns a copy of an object with the changed fields of its spec. resourceType becomes the
// preset whose resources they are, and custom for others. An error is that of the rules.
func Apply(kind *kinds.Kind, obj *unstructured.Unstructured, spec map[string]any) (*unstructured.Unstructured, error) {
	changed := obj.DeepCopy()
	content, _ := changed.Object["spec"].(map[string]any) // The schema requires it.
	maps.Copy(content, spec)
	maps.DeleteFunc(content, func(_ string, value any) bool { return value == nil })
	_, resources := spec["resources"]
	if !resources || kind != kinds.ModelBox() {
		_, err := Template(kind, changed)
		return changed, err
	}
	current, _, err := unstructured.NestedString(obj.Object, "spec", "resourceType")
	for _, preset := range []modelv1.ResourceType{
		modelv1.ResourceType(current), modelv1.ResourceTypeSmall, modelv1.ResourceTypeMedium, modelv1.ResourceTypeLarge, modelv1.ResourceTypeCustom,
	} {
		content["resourceType"] = string(preset)
		if _, err = Template(kind, changed); err == nil {
			break
		}
	}
	return changed, err
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
