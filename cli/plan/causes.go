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
// so alone, with the defaults that follow it, which a dry run says. If none of them does, all
// changes together are the cause; it is nil if the object does not change. A list is one field.
func (p *Planner) causes(ctx context.Context, o *Object) []string {
	var all, out []string
	changes := o.changes()
	before := o.template(o.before)
	for _, names := range changes {
		all = append(all, pathOf(names))
		if len(changes) == 1 {
			break
		}
		alone, err := p.alone(ctx, o, names)
		if err != nil {
			continue // It needs another change.
		}
		if after := o.template(alone); after != nil && !equality.Semantic.DeepEqual(before, after) {
			out = append(out, all[len(all)-1])
		}
	}
	if len(out) > 0 {
		return out
	}
	return all
}

// changes returns the names of the changed fields, but for those that follow others: the manifest
// does not have their values.
func (o *Object) changes() [][]string {
	return slices.DeleteFunc(changed([]string{"spec"}, o.before.Object["spec"], o.Stored.Object["spec"]), func(names []string) bool {
		_, set, _ := unstructured.NestedFieldNoCopy(o.Stored.Object, names...)
		_, sent, _ := unstructured.NestedFieldNoCopy(o.manifest.Object, names...)
		return set && !sent
	})
}

// alone returns the stored object with the change of one field, as the API server would store it.
func (p *Planner) alone(ctx context.Context, o *Object, names []string) (*unstructured.Unstructured, error) {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Stored.Object, names...)
	for _, name := range slices.Backward(names) {
		value = map[string]any{name: value} // A null removes the field.
	}
	patch, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return p.patch(ctx, p.Client, o, types.MergePatchType, patch)
}

// template returns the pod template that the operator builds of a stored object, nil if none can be
// made of it.
func (o *Object) template(stored *unstructured.Unstructured) *corev1.PodTemplateSpec {
	children, err := o.built(stored)
	if err != nil {
		return nil
	}
	return render.TemplateOf(children[0])
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
