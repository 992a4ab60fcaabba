// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

// restored are the fields of a container that undo restores, and the fields of a spec that
// they come from.
var restored = map[string]string{
	"image": "image", "command": "command", "args": "args", "env": "envs", "envFrom": "envFrom", "resources": "resources",
}

// volatile are parts of a pod template that differ between revisions of the same state.
var volatile = []string{appsv1.DefaultDeploymentUniqueLabelKey, "kubectl.kubernetes.io/restartedAt"}

// Changes returns the fields of a spec that have to be changed to return from one pod template
// to another, with their values there; nil is that the field is not set. The other result are
// the paths in the pod template that differ and have no such field. container is the name of
// the main container.
func Changes(from, to *corev1.PodTemplateSpec, container string) (spec map[string]any, others []string, err error) {
	before, after := containerOf(from, container), containerOf(to, container)
	if before == nil || after == nil {
		return nil, []string{fmt.Sprintf("spec.template.spec.containers[%s]", container)}, nil
	}
	spec = map[string]any{}
	for name, field := range restored {
		a, b := valueOf(before, name), valueOf(after, name)
		if equality.Semantic.DeepEqual(a, b) {
			continue
		}
		if spec[field], err = plain(b); err != nil {
			return nil, nil, err
		}
	}
	a, err := remainder(from, container)
	if err != nil {
		return nil, nil, err
	}
	b, err := remainder(to, container)
	if err != nil {
		return nil, nil, err
	}
	return spec, differences("spec.template", a, b), nil
}

// Pending returns a revision's pod template with the restored fields of the template that the
// operator makes of the object now: they differ while a change has not been rolled out, as when
// the object is paused.
func Pending(current, desired *corev1.PodTemplateSpec, container string) *corev1.PodTemplateSpec {
	pending := current.DeepCopy()
	into, from := containerOf(pending, container), containerOf(desired, container)
	if into != nil && from != nil {
		restore(into, from)
	}
	return pending
}

// restore copies the restored fields of a container.
func restore(into, from *corev1.Container) {
	into.Image, into.Command, into.Args = from.Image, from.Command, from.Args
	into.Env, into.EnvFrom, into.Resources = from.Env, from.EnvFrom, from.Resources
}

// Unrestored returns the fields of the main container that differ although they were restored,
// because podTemplate sets them as well.
func Unrestored(got, want *corev1.PodTemplateSpec, container string) []string {
	a, b := containerOf(got, container), containerOf(want, container)
	if a == nil || b == nil {
		return []string{fmt.Sprintf("spec.template.spec.containers[%s]", container)}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(restored)) {
		if !equality.Semantic.DeepEqual(valueOf(a, name), valueOf(b, name)) {
			out = append(out, fmt.Sprintf("spec.template.spec.containers[%s].%s", container, name))
		}
	}
	return out
}

// WithoutEnv returns a copy of a pod template without some environment variables of the main
// container.
func WithoutEnv(template *corev1.PodTemplateSpec, container string, names sets.Set[string]) *corev1.PodTemplateSpec {
	out := template.DeepCopy()
	if main := containerOf(out, container); main != nil {
		main.Env = slices.DeleteFunc(main.Env, func(v corev1.EnvVar) bool { return names.Has(v.Name) })
	}
	return out
}

// valueOf returns the value of one of the restored fields.
func valueOf(c *corev1.Container, name string) any {
	return map[string]any{
		"image": c.Image, "command": c.Command, "args": c.Args, "env": c.Env, "envFrom": c.EnvFrom, "resources": c.Resources,
	}[name]
}

// plain returns a value as JSON has it, nil if it is empty.
func plain(value any) (any, error) {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Slice && v.Len() == 0 {
		return nil, nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var out any
	err = utiljson.Unmarshal(data, &out)
	return out, err
}

// remainder returns what is left of a pod template without the fields that undo restores, those
// that follow them, and those that always differ.
func remainder(template *corev1.PodTemplateSpec, container string) (any, error) {
	rest := template.DeepCopy()
	if main := containerOf(rest, container); main != nil {
		restore(main, &corev1.Container{})
	}
	for i := range rest.Spec.InitContainers {
		if c := &rest.Spec.InitContainers[i]; modelsource.IsFetcher(c) {
			*c = modelsource.WithoutFetcher(*c)
			c.Resources = corev1.ResourceRequirements{} // They follow the main container's.
		}
	}
	for _, key := range volatile {
		delete(rest.Labels, key)
		delete(rest.Annotations, key)
	}
	if len(rest.Annotations) == 0 {
		rest.Annotations = nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(rest)
}

// differences returns the paths at which two values differ, as deep as both are objects or
// lists of the same length.
func differences(path string, a, b any) []string {
	if equality.Semantic.DeepEqual(a, b) {
		return nil
	}
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			return inObjects(path, a, b)
		}
	case []any:
		if b, ok := b.([]any); ok && len(a) == len(b) {
			return inLists(path, a, b)
		}
	}
	return []string{path}
}

func inObjects(path string, a, b map[string]any) []string {
	keys := slices.Sorted(maps.Keys(a))
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	var out []string
	for _, key := range keys {
		below := path + "." + key
		if strings.ContainsAny(key, "./") {
			below = path + "[" + key + "]"
		}
		out = append(out, differences(below, a[key], b[key])...)
	}
	return out
}

func inLists(path string, a, b []any) []string {
	var out []string
	for i := range a {
		out = append(out, differences(fmt.Sprintf("%s[%s]", path, nameIn(a[i], i)), a[i], b[i])...)
	}
	return out
}

// nameIn returns the name of an item of a list, or its index.
func nameIn(item any, i int) string {
	if object, ok := item.(map[string]any); ok {
		if name, ok := object["name"].(string); ok {
			return name
		}
	}
	return fmt.Sprint(i)
}
