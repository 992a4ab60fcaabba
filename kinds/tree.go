// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Fields are patterns of the paths of values below spec, such as resources.limits.*, in which * is
// any name, and any item of a list with keys. A value is an object or a list as a whole, unless a
// longer pattern says that each of its fields is a value of its own.
type Fields [][]string

// NewFields returns patterns from their texts.
func NewFields(patterns ...string) Fields {
	out := make(Fields, len(patterns))
	for i, pattern := range patterns {
		out[i] = strings.Split(pattern, ".")
	}
	return out
}

// at reports whether a pattern is equal to a path, and whether a longer one begins with it.
func (f Fields) at(path fieldpath.Path) (exact, below bool) {
	for _, pattern := range f {
		if len(pattern) < len(path) || !matches(pattern, path) {
			continue
		}
		exact, below = exact || len(pattern) == len(path), below || len(pattern) > len(path)
	}
	return exact, below
}

// matches reports whether a path begins as a pattern.
func matches(pattern []string, path fieldpath.Path) bool {
	for i, element := range path {
		if pattern[i] != "*" && (element.FieldName == nil || pattern[i] != *element.FieldName) {
			return false
		}
	}
	return true
}

// Leaf is a value of a spec as decoded JSON. An object without fields is one where its fields would
// be, and an item of a list with keys is one beside its fields.
type Leaf struct {
	Path  fieldpath.Path // Below spec.
	Value any
}

// Top returns the name of the field of the spec that the value is in.
func (l *Leaf) Top() string { return *l.Path[0].FieldName }

// Name returns the last name of the path, "" for an item of a list.
func (l *Leaf) Name() string { return ptr.Deref(l.Path[len(l.Path)-1].FieldName, "") }

func (l *Leaf) isItem() bool { return l.Path[len(l.Path)-1].Key != nil }

// isInItem reports whether the value is in an item of a list.
func (l *Leaf) isInItem() bool { return len(l.Path) > 2 && l.Path[1].Key != nil }

func (l *Leaf) isEmpty() bool {
	object, isObject := l.Value.(map[string]any)
	return isObject && len(object) == 0
}

// Leaves are values of a spec, those of lists in their order, and by the texts of their paths.
type Leaves struct {
	All    []*Leaf
	byPath map[string]*Leaf
}

// Of returns the values of a spec that are some of the fields.
func (f Fields) Of(spec map[string]any) Leaves {
	out := Leaves{byPath: map[string]*Leaf{}}
	for name, field := range spec {
		f.add(&out, fieldpath.Path{fieldpath.FieldNameElement(name)}, field)
	}
	return out
}

func (f Fields) add(to *Leaves, at fieldpath.Path, of any) {
	exact, below := f.at(at)
	object, isObject := of.(map[string]any)
	list, isList := of.([]any)
	leaf := &Leaf{at, of}
	switch {
	case below && isList:
		keys := keysOf(list, listKeys[*at[0].FieldName])
		for i, item := range list[:len(keys)] {
			f.add(to, append(slices.Clip(at), keys[i]), item)
		}
		return
	case exact && (!below || leaf.isItem()), below && isObject && len(object) == 0:
		to.All = append(to.All, leaf)
		to.byPath[at.String()] = leaf
	}
	if below {
		for name, field := range object {
			f.add(to, append(slices.Clip(at), fieldpath.FieldNameElement(name)), field)
		}
	}
}

// At returns the value at the path of another one, nil if there is none.
func (v *Leaves) At(leaf *Leaf) *Leaf { return v.byPath[leaf.Path.String()] }

// HasEqual reports whether the value at the path of another one is equal to it.
func (v *Leaves) HasEqual(leaf *Leaf) bool {
	own := v.At(leaf)
	return own != nil && isEqual(own.Value, leaf.Value)
}

// Fill sets the values that a spec does not have to those of another one.
func (f Fields) Fill(spec, from map[string]any) {
	own, others := f.Of(spec), f.Of(from)
	for _, leaf := range others.All {
		if own.At(leaf) == nil {
			with(spec, leaf.Path, leaf.Value)
		}
	}
}

// listKeys are the keys of the lists of a spec whose items can have derived values.
var listKeys = map[string][]string{"ports": {"port", "protocol"}, "envs": {"name"}}

// maxItems is the maximum length of any of these lists. Validation refuses a longer one.
const maxItems = 1024

// keysOf returns the key of each item of a list. There are none if the list is too long, or if two are
// equal, which validation refuses.
func keysOf(list []any, names []string) []fieldpath.PathElement {
	if len(list) > maxItems {
		return nil
	}
	out, seen := make([]fieldpath.PathElement, len(list)), map[string]bool{}
	for i, item := range list {
		key := make(value.FieldList, len(names))
		for j, name := range names {
			key[j] = value.Field{Name: name, Value: value.NewValueInterface(keyField(item, name))}
		}
		out[i].Key = &key
		text := out[i].String()
		if seen[text] {
			return nil
		}
		seen[text] = true
	}
	return out
}

// keyField returns a field of an item's key, with the default of the schema.
func keyField(item any, name string) any {
	fields, _ := item.(map[string]any)
	if of, ok := fields[name]; ok || name != "protocol" {
		return of
	}
	return "TCP"
}

// indexOf returns the index of the item of a list that has a key, -1 if there is none.
func indexOf(list []any, key value.FieldList) int {
	return slices.IndexFunc(list, func(item any) bool {
		return !slices.ContainsFunc(key, func(f value.Field) bool {
			return !value.Equals(f.Value, value.NewValueInterface(keyField(item, f.Name)))
		})
	})
}

// without returns a value without what is at a path, and without the objects and lists that are
// empty then, but for those that kept has. It changes the value.
func without(v any, path fieldpath.Path, kept *fieldpath.Set) any {
	element, rest := path[0], path[1:]
	inside := func(inner any) (any, bool) {
		if len(rest) == 0 {
			return nil, false
		}
		inner = without(inner, rest, kept.WithPrefix(element))
		return inner, size(inner) > 0 || kept.Members.Has(element)
	}
	switch v := v.(type) {
	case map[string]any:
		name := *element.FieldName
		if inner, ok := v[name]; ok {
			if v[name], ok = inside(inner); !ok {
				delete(v, name)
			}
		}
		return v
	case []any:
		if i := indexOf(v, *element.Key); i >= 0 {
			var ok bool
			if v[i], ok = inside(v[i]); !ok {
				return slices.Delete(v, i, i+1)
			}
		}
		return v
	}
	return v
}

// size returns the number of fields or items, and 1 for a value that has none.
func size(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	}
	return 1
}

// with returns a value with another one at a path, unless that is in an item which is not there. It
// changes the value.
func with(v any, path fieldpath.Path, set any) any {
	if len(path) == 0 {
		return set
	}
	if key := path[0].Key; key != nil {
		list, _ := v.([]any)
		switch i := indexOf(list, *key); {
		case i >= 0:
			list[i] = with(list[i], path[1:], set)
		case len(path) == 1:
			list = append(list, set)
		}
		return list
	}
	object, ok := v.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	object[*path[0].FieldName] = with(object[*path[0].FieldName], path[1:], set)
	return object
}
