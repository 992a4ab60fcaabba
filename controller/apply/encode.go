// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Manifest returns, as JSON, what the operator applies for a desired child.
func Manifest(desired client.Object) ([]byte, error) { return applyConfiguration(desired) }

// applyConfiguration encodes a desired object without its status and without the nulls that the
// Go type cannot omit: an apply would own these fields.
func applyConfiguration(desired client.Object) ([]byte, error) {
	content, err := contentOf(desired)
	if err != nil {
		return nil, err
	}
	return json.Marshal(content)
}

func contentOf(desired client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(withSources(desired))
	delete(content, "status")
	removeNulls(content)
	return content, err
}

// withSources returns an object whose volumes without a source have the one that the API server gives them. An apply
// that leaves it out would keep any source that another client has put there.
func withSources(obj client.Object) client.Object {
	switch obj.(type) {
	case *appsv1.Deployment, *appsv1.DaemonSet:
	default:
		return obj
	}
	obj = obj.DeepCopyObject().(client.Object)
	volumes := Template(obj).Spec.Volumes
	for i := range volumes {
		if volumes[i].VolumeSource == (corev1.VolumeSource{}) {
			volumes[i].EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
	}
	return obj
}

func removeNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			if member == nil {
				delete(value, key)
			}
			removeNulls(member)
		}
	case []any:
		for _, item := range value {
			removeNulls(item)
		}
	}
}

// NewOf returns an empty object of the type of obj.
func NewOf(obj client.Object) client.Object {
	empty := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if _, ok := empty.(*unstructured.Unstructured); ok {
		empty.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	}
	return empty
}
