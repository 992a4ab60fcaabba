// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// tree is an object in JSON: maps, lists, strings, int64, float64 and bools.
type tree = map[string]any

// A path is that of a value in a tree: a string is the key of a map, an int the index of a list
// item.
type path []any

func (p path) then(step any) path { return append(slices.Clone(p), step) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// copied returns a deep copy.
func copied(value any) any { return runtime.DeepCopyJSONValue(value) }

// altered returns a copy of a tree with another value at a path, or without the value if change
// returns false. change is called with nil if there is no value.
func altered(node any, at path, change func(old any) (value any, keep bool)) any {
	if len(at) == 0 {
		value, _ := change(node)
		return value
	}
	switch step := at[0].(type) {
	case int:
		list := slices.Clone(node.([]any))
		value, keep := alteredStep(list[step], at[1:], change)
		if !keep {
			return slices.Delete(list, step, step+1)
		}
		list[step] = value
		return list
	default:
		object := maps.Clone(node.(tree))
		if object == nil {
			object = tree{}
		}
		value, keep := alteredStep(object[step.(string)], at[1:], change)
		delete(object, step.(string))
		if keep {
			object[step.(string)] = value
		}
		return object
	}
}

func alteredStep(value any, rest path, change func(any) (any, bool)) (any, bool) {
	if len(rest) == 0 {
		return change(value)
	}
	return altered(value, rest, change), true
}

// valueAt returns the value at a path, nil if there is none.
func valueAt(node any, at path) any {
	for _, step := range at {
		switch step := step.(type) {
		case int:
			node = node.([]any)[step]
		case string:
			object, _ := node.(tree)
			node = object[step]
		}
	}
	return node
}

// keyOf returns the keys of an item in a keyed list: "name=A".
func keyOf(keys []string, item any) string {
	object, ok := item.(tree)
	if !ok {
		return fmt.Sprint(item)
	}
	var parts []string
	for _, key := range keys {
		value, set := object[key]
		if !set && key == "protocol" {
			value = "TCP" // The API server's default.
		}
		parts = append(parts, fmt.Sprintf("%s=%v", key, value))
	}
	return strings.Join(parts, ",")
}

// anything is the expected value for one that the API server chooses.
const anything = "whatever the API server chooses"

// differences returns the fields in which two trees differ, with their values. The items of a
// keyed list may have another order.
func (s schemas) differences(t *typeSchema, at string, want, have any) []string {
	if want == anything || reflect.DeepEqual(want, have) {
		return nil
	}
	switch want := want.(type) {
	case tree:
		if have, ok := have.(tree); ok {
			return s.objectDifferences(t, at, want, have)
		}
	case []any:
		if have, ok := have.([]any); ok && !t.atomic() {
			return s.listDifferences(t, at, want, have)
		}
	}
	return []string{fmt.Sprintf("%s is %s, want %s", at, brief(have), brief(want))}
}

func (s schemas) objectDifferences(t *typeSchema, at string, want, have tree) []string {
	both := maps.Clone(want)
	maps.Copy(both, have)
	var found []string
	for _, key := range sortedKeys(both) {
		found = append(found, s.differences(s.child(t, key), at+"."+key, want[key], have[key])...)
	}
	return found
}

func (s schemas) listDifferences(t *typeSchema, at string, want, have []any) []string {
	rest := slices.Clone(have)
	var found []string
	for _, item := range want {
		key := keyOf(t.ListKeys, item)
		i := slices.IndexFunc(rest, func(other any) bool { return keyOf(t.ListKeys, other) == key })
		var other any
		if i >= 0 {
			other = rest[i]
			rest = slices.Delete(rest, i, i+1)
		}
		found = append(found, s.differences(s.of(t.Items), at+"["+key+"]", item, other)...)
	}
	for _, item := range rest {
		found = append(found, fmt.Sprintf("%s[%s] is %s, want none", at, keyOf(t.ListKeys, item), brief(item)))
	}
	return found
}

// brief returns a value, shortened.
func brief(value any) string {
	if value == nil {
		return "not there"
	}
	text := fmt.Sprintf("%q", fmt.Sprint(value))
	const most = 120
	if len(text) > most {
		return text[:most] + `..."`
	}
	return text
}
