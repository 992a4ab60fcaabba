// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A fieldEdit is one change of one field of an object.
type fieldEdit struct {
	// field is the path, with the keys of list items: "spec.ports[port=80,protocol=TCP].name".
	field string
	// what is the change: "change", "remove", "add", "swap for exec", "repeat".
	what string
	// place is the same for all objects: the field and the type that has it.
	place string
	at    path
	// variants are tried one after the other until the API server accepts one.
	variants []func(old any) (any, bool)
	// others are other values of a field that is removed: a server-side apply removes
	// only what it has set before.
	others []func(old any) (any, bool)
	// new is the path at which the edit adds a value.
	new *where
}

func (e *fieldEdit) String() string { return e.field + " " + e.what }

// to returns the object after the edit.
func (e *fieldEdit) to(object tree, variant int) tree {
	return altered(object, e.at, e.variants[variant]).(tree)
}

// editor lists the edits of an object.
type editor struct {
	schemas
	samples samples
	found   []*fieldEdit
}

// where is a field in an object that is walked.
type where struct {
	at    path
	field string
	place string
	of    *typeSchema
}

func (w where) key(s schemas, key string) where {
	place := w.of.name
	if place == "" || w.of.Values != nil {
		place = w.place
	}
	return where{at: w.at.then(key), field: strings.TrimPrefix(w.field+"."+key, "."), place: place + "." + key, of: s.child(w.of, key)}
}

func (w where) item(s schemas, i int, item any) where {
	name := fmt.Sprint(i)
	switch {
	case len(w.of.ListKeys) == 1 && w.of.ListKeys[0] == "uid":
		name = "uid" // It differs in each run.
	case len(w.of.ListKeys) > 0:
		name = keyOf(w.of.ListKeys, item)
	}
	return where{at: w.at.then(i), field: w.field + "[" + name + "]", place: w.place + "[]", of: s.of(w.of.Items)}
}

func (e *editor) add(w where, what string, variants ...func(any) (any, bool)) {
	if len(variants) > 0 {
		e.found = append(e.found, &fieldEdit{field: w.field, what: what, place: w.place + " " + what, at: w.at, variants: variants})
	}
}

// addNew adds an edit of a field that adds a value in it.
func (e *editor) addNew(inner, w where, what string, variants []func(any) (any, bool)) {
	at := w
	if what == "add" {
		at = inner
	}
	if len(variants) > 0 {
		e.add(at, what, variants...)
		e.found[len(e.found)-1].new = &inner
	}
}

func always(value any) func(any) (any, bool) {
	return func(any) (any, bool) { return copied(value), true }
}

func removed(any) (any, bool) { return nil, false }

// walk lists the edits of a value and of all values in it.
func (e *editor) walk(w where, value any) {
	switch value := value.(type) {
	case tree:
		e.object(w, value)
	case []any:
		e.list(w, value)
	default:
		e.scalar(w, value)
	}
}

func (e *editor) scalar(w where, value any) {
	e.add(w, "change", e.changes(w, value)...)
}

// changes returns edits that give a scalar field other values.
func (e *editor) changes(w where, value any) []func(any) (any, bool) {
	switch value.(type) {
	case tree, []any:
		return nil
	}
	return e.constants(e.samples.others(w, value))
}

func (e *editor) object(w where, object tree) {
	for _, key := range sortedKeys(object) {
		inner := w.key(e.schemas, key)
		e.add(inner, "remove", removed)
		e.found[len(e.found)-1].others = e.changes(inner, object[key])
		e.walk(inner, object[key])
	}
	if w.of.Values != nil {
		inner := w.key(e.schemas, e.extraKey(w))
		e.add(inner, "add", e.constants(e.samples.of(e.schemas, inner))...)
	}
	members := w.of.members()
	for _, key := range sortedKeys(w.of.Properties) {
		if inner := w.key(e.schemas, key); object[key] == nil && !slices.Contains(members, key) {
			e.addNew(inner, w, "add", e.constants(e.samples.of(e.schemas, inner)))
		}
	}
	e.swaps(w, object, members)
}

// extraKey returns a key that is valid in a map.
func (e *editor) extraKey(w where) string {
	if e.of(w.of.Values).name == "Quantity" {
		return "ephemeral-storage"
	}
	return "example.com/extra"
}

func (e *editor) constants(values []any) []func(any) (any, bool) {
	var variants []func(any) (any, bool)
	for _, value := range values {
		variants = append(variants, always(value))
	}
	return variants
}

// swaps replaces the member of a union that is set.
func (e *editor) swaps(w where, object tree, members []string) {
	for _, whole := range e.samples.whole[w.of.name] {
		e.add(w, "swap for "+brief(whole), always(whole))
	}
	if len(e.samples.whole[w.of.name]) > 0 {
		return
	}
	for _, member := range members {
		if object[member] != nil {
			continue
		}
		var variants []func(any) (any, bool)
		for _, sample := range e.samples.of(e.schemas, w.key(e.schemas, member)) {
			variants = append(variants, func(old any) (any, bool) {
				swapped := maps.Clone(old.(tree))
				maps.DeleteFunc(swapped, func(key string, _ any) bool { return slices.Contains(members, key) })
				swapped[member] = copied(sample)
				return swapped, true
			})
		}
		e.addNew(w.key(e.schemas, member), w, "swap for "+member, variants)
	}
}

func (e *editor) list(w where, list []any) {
	for i, item := range list {
		inner := w.item(e.schemas, i, item)
		e.add(inner, "remove", removed)
		e.walk(inner, item)
	}
	if len(list) == 0 {
		return
	}
	last := list[len(list)-1]
	var extras []func(any) (any, bool)
	for _, extra := range e.samples.extra(e.schemas, w, last) {
		extras = append(extras, func(old any) (any, bool) { return append(slices.Clone(old.([]any)), copied(extra)), true })
	}
	e.add(w, "add an item", extras...)
	if len(w.of.ListKeys) > 0 {
		e.add(w, "repeat the last item", func(old any) (any, bool) { return append(slices.Clone(old.([]any)), e.again(w, last)), true })
	}
}

// again returns an item with the keys of another one and, where it can, another value.
func (e *editor) again(w where, item any) any {
	inner := w.item(e.schemas, 0, item)
	for _, key := range sortedKeys(item.(tree)) {
		value := item.(tree)[key]
		if slices.Contains(w.of.ListKeys, key) {
			continue
		}
		for _, other := range e.samples.others(inner.key(e.schemas, key), value) {
			if !reflect.DeepEqual(other, value) {
				return altered(item, path{key}, always(other))
			}
		}
	}
	return copied(item)
}
