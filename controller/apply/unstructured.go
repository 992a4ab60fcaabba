// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
)

// unstructured compares two objects of a kind that has no Go type here, one of a CRD. A map is granular and a list
// atomic, as server-side apply merges them where a CRD has no other markers. So the desired state must contain the
// defaults of the items of its lists.
func (c *comparison) unstructured(desired, live *unstructured.Unstructured) {
	c.enter(step{member: "metadata"})
	c.structs(metadataOf(desired), metadataOf(live), false)
	c.leave()
	rest := sets.KeySet(desired.Object).Delete("apiVersion", "kind", "metadata", "status")
	for _, key := range sets.List(rest) {
		c.member(key, desired.Object[key], live.Object)
	}
}

// metadataOf returns metadata as the type that has the keys of its lists.
func metadataOf(obj *unstructured.Unstructured) reflect.Value {
	out := metav1.ObjectMeta{}
	in, _ := obj.Object["metadata"].(map[string]any)
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(in, &out) // What cannot be decoded differs.
	return reflect.ValueOf(out)
}

func (c *comparison) member(key string, want any, live map[string]any) {
	c.enter(step{member: key})
	defer c.leave()
	have, found := live[key]
	members, isMap := want.(map[string]any)
	others, both := have.(map[string]any)
	switch {
	case !found:
		c.differ(reflect.ValueOf(want), reflect.Value{})
	case isMap && both:
		for _, key := range slices.Sorted(maps.Keys(members)) {
			c.member(key, members[key], others)
		}
	case !equalJSON(want, have):
		c.differ(reflect.ValueOf(want), reflect.ValueOf(have))
	}
}

// equalJSON compares two values as JSON: 1 is the same in each type of a number.
func equalJSON(a, b any) bool {
	if equality.Semantic.DeepEqual(a, b) {
		return true
	}
	first, err := json.Marshal(a)
	second, more := json.Marshal(b)
	return err == nil && more == nil && string(first) == string(second)
}
