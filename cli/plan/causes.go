// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/cli/render"
)

// causes returns the fields of the object whose changes change the pod template: each of them does
// so alone, with the defaults that follow it. If none of them does, all changes together are the
// cause; it is nil if the object does not change. A list is one field. What the manifest does not
// have has changed with another field.
func (p *Planner) causes(ctx context.Context, o *Object) (out []string) {
	var all []string
	changes := changed([]string{"spec"}, o.before.Object["spec"], o.Stored.Object["spec"])
	changes = slices.DeleteFunc(changes, func(names []string) bool {
		_, set, _ := unstructured.NestedFieldNoCopy(o.Stored.Object, names...)
		_, sent, _ := unstructured.NestedFieldNoCopy(o.manifest.Object, names...)
		return set && !sent
	})
	for _, names := range changes {
		all = append(all, pathOf(names))
		if len(changes) > 1 && p.isCause(ctx, o, names) {
			out = append(out, all[len(all)-1])
		}
	}
	if len(out) > 0 {
		return out
	}
	return all
}

// isCause reports whether the change of one field changes the pod template. A dry run says which
// defaults follow it, or that it is not valid alone.
func (p *Planner) isCause(ctx context.Context, o *Object, names []string) bool {
	patch, _, _ := unstructured.NestedFieldNoCopy(o.Stored.Object, names...)
	for _, name := range slices.Backward(names) {
		patch = map[string]any{name: patch} // A null removes the field.
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return false
	}
	alone, err := p.patch(ctx, p.Client, o, types.MergePatchType, data)
	if err != nil {
		return false
	}
	after := o.template(alone)
	return after != nil && !equality.Semantic.DeepEqual(o.template(o.before), after)
}

// template returns the pod template that the operator builds of a stored object, nil if none can be
// made of it.
func (o *Object) template(stored *unstructured.Unstructured) *corev1.PodTemplateSpec {
	_, children, err := o.build(stored)
	if err != nil {
		return nil
	}
	return render.TemplateOf(withDefaults(children[0]))
}

// changed returns the names of the fields that differ in two values, from the outermost to the
// innermost that is an object in both.
func changed(names []string, from, to any) (out [][]string) {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	before, isObject := from.(map[string]any)
	after, areObjects := to.(map[string]any)
	if !isObject || !areObjects {
		return [][]string{names}
	}
	for _, key := range sets.List(sets.KeySet(before).Union(sets.KeySet(after))) {
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
