// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is an object of the API of any kind.
type Object interface {
	metav1.Object
	runtime.Object
}

// KindOf returns the kind of an object, from its Go type if it has no TypeMeta, as those in the
// cache.
func KindOf(obj Object) string {
	return cmp.Or(obj.GetObjectKind().GroupVersionKind().Kind, reflect.TypeOf(obj).Elem().Name())
}

// NewOf returns an empty object of the type of obj.
func NewOf[T Object](obj T) T {
	empty := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(T)
	if _, ok := any(empty).(*unstructured.Unstructured); ok {
		empty.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	}
	return empty
}

// ApplyConfiguration encodes a desired object, as Content returns it, for a server-side apply.
func ApplyConfiguration(desired Object) ([]byte, error) {
	content, err := Content(desired)
	if err != nil {
		return nil, err
	}
	return json.Marshal(content)
}

// Content returns a desired object without its status and without the nulls that the Go type cannot
// omit: an apply would own these fields.
func Content(desired Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(withSources(desired))
	delete(content, "status")
	removeNulls(content)
	return content, err
}

// withSources returns an object whose volumes without a source have the one that the API server
// gives them. An apply that leaves it out would keep any source that another client has put there.
func withSources(obj Object) Object {
	template := PodTemplate(obj)
	if template == nil || !slices.ContainsFunc(template.Spec.Volumes, isWithoutSource) {
		return obj
	}
	obj = obj.DeepCopyObject().(Object)
	volumes := PodTemplate(obj).Spec.Volumes
	for i := range volumes {
		if isWithoutSource(volumes[i]) {
			volumes[i].EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
	}
	return obj
}

func isWithoutSource(v corev1.Volume) bool { return v.VolumeSource == corev1.VolumeSource{} }

// PodTemplate returns the pod template of a Deployment or a DaemonSet, nil for another object.
func PodTemplate(obj Object) *corev1.PodTemplateSpec {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return &obj.Spec.Template
	case *appsv1.DaemonSet:
		return &obj.Spec.Template
	}
	return nil
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
