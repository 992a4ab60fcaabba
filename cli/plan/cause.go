// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
)

// causes returns the fields of the object whose changes change the pod template: each of them does
// so alone, with the defaults that follow it. If none of them does, all changes together are the cause;
// it is nil if the object does not change. A list is one field.
func (o *Object) causes(sizes modelbox.Sizes) []string {
	var all, out []string
	before := o.template(o.before, sizes)
	for _, names := range changed([]string{"spec"}, o.before.Object["spec"], o.patched.Object["spec"]) {
		all = append(all, pathOf(names))
		variant := o.patched.DeepCopy()
		variant.Object["spec"] = o.before.DeepCopy().Object["spec"]
		if value, found, _ := unstructured.NestedFieldCopy(o.patched.Object, names...); found {
			_ = unstructured.SetNestedField(variant.Object, value, names...) // It is in an object.
		} else {
			unstructured.RemoveNestedField(variant.Object, names...)
		}
		if after := o.template(variant, sizes); after != nil && !equality.Semantic.DeepEqual(before, after) {
			out = append(out, all[len(all)-1])
		}
	}
	if len(out) > 0 {
		return out
	}
	return all
}

// template returns the pod template of an update of the stored object, nil if none can be made of it.
func (o *Object) template(updated *unstructured.Unstructured, sizes modelbox.Sizes) *corev1.PodTemplateSpec {
	obj, err := create.Defaulted(o.kind, updated, o.before, sizes)
	if err != nil {
		return nil
	}
	children, err := o.kind.Children(obj, o.fetcher)
	if err != nil {
		return nil
	}
	render.SetDefaults(children[0])
	return render.TemplateOf(children[0])
}

// changed returns the names of the fields that differ in two values, from the outermost to the innermost that is an object in both.
func changed(names []string, from, to any) (out [][]string) {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	before, isObject := from.(map[string]any)
	after, areObjects := to.(map[string]any)
	if !isObject || !areObjects {
		return [][]string{names}
	}
	for _, key := range slices.Sorted(maps.Keys(merged(before, after))) {
		was, had := before[key]
		is, has := after[key]
		if at := append(slices.Clone(names), key); had && has {
			out = append(out, changed(at, was, is)...)
		} else {
			out = append(out, at)
		}
	}
	return out
}

func pathOf(names []string) string {
	path := field.NewPath(names[0])
	for _, name := range names[1:] {
		if strings.ContainsAny(name, "./") {
			path = path.Key(name)
		} else {
			path = path.Child(name)
		}
	}
	return path.String()
}

func merged[V any](a, b map[string]V) map[string]V {
	out := maps.Clone(b)
	maps.Copy(out, a)
	return out
}
