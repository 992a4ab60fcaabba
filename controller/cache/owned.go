// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/modelbox-operator/modelbox-operator/api"
)

// Stored returns the hash of what our field manager owns in an object: the entries of
// api.FieldManager in metadata.managedFields, and the values at their leaves. It is empty if it
// owns nothing. Any change by another client of a field that we own changes the hash, because the
// API server then removes the field from our entry, or the value is another one; a change of any
// other field does not. An object of the cache has the hash that it had before its content was
// removed.
func Stored(obj client.Object) string {
	switch held := obj.GetSelfLink(); held {
	case "":
	case nothingOwned:
		return ""
	default:
		return held
	}
	owned := OwnedFields(obj)
	if owned.Empty() {
		return ""
	}
	h := hasher{sha256.New()}
	h.walk(owned, ValueOf(obj))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// nothingOwned is what the cache holds in place of a hash.
const nothingOwned = "-"

// OwnedFields returns the union of the entries of our field manager in metadata.managedFields. One
// that cannot be parsed, which no API server stores, owns nothing.
func OwnedFields(obj client.Object) *fieldpath.Set {
	entries, owned := obj.GetManagedFields(), fieldpath.NewSet()
	for i := range entries {
		entry := &entries[i]
		if entry.Manager != api.FieldManager || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		set := fieldpath.NewSet()
		switch err := set.FromJSON(entry.FieldsV1.GetRawReader()); {
		case err != nil:
		case owned.Empty(): // Most objects have one entry.
			owned = set
		default:
			owned = owned.Union(set)
		}
	}
	return owned
}

// ValueOf returns an object as a value, which is not converted as a whole.
func ValueOf(obj client.Object) value.Value {
	if content, ok := obj.(*unstructured.Unstructured); ok {
		return value.NewValueInterface(content.Object)
	}
	v, err := value.NewValueReflect(obj)
	if err != nil { // Only for a value that is no pointer.
		return value.NewValueInterface(nil)
	}
	return v
}

// hasher writes owned fields and their values, in an order that depends on nothing else.
type hasher struct{ hash.Hash }

func (h hasher) write(format string, args ...any) {
	_, _ = fmt.Fprintf(h, format, args...) // A hash returns no error.
}

// walk writes the values in v of a set of owned fields. What v does not have is missing in the
// hash.
func (h hasher) walk(owned *fieldpath.Set, v value.Value) {
	switch {
	case v.IsMap():
		h.members(owned, v.AsMap())
	case v.IsList():
		h.items(owned, v.AsList())
	}
}

func (h hasher) members(owned *fieldpath.Set, in value.Map) {
	visit := func(at fieldpath.PathElement) {
		if at.FieldName == nil {
			return
		}
		if v, ok := in.Get(*at.FieldName); ok {
			h.field(owned, at, v)
		}
	}
	owned.Members.Iterate(func(at fieldpath.PathElement) {
		if _, both := owned.Children.Get(at); !both {
			visit(at)
		}
	})
	owned.Children.Iterate(visit)
}

// items writes the owned items of a list in the order in which the list has them, each as often as
// it is there: a second item with the same keys, and another order of ours, are other hashes, and
// items of other managers between ours are not.
func (h hasher) items(owned *fieldpath.Set, in value.List) {
	shapes := shapesOf(owned)
	for i := range in.Length() {
		item := in.At(i)
		for _, shape := range shapes {
			if at, ok := shape.of(item, i); ok {
				h.field(owned, at, item)
			}
		}
	}
}

// field writes a field if it is owned: its own fields if these are named, and otherwise the whole.
func (h hasher) field(owned *fieldpath.Set, at fieldpath.PathElement, v value.Value) {
	if of, ok := owned.Children.Get(at); ok {
		h.write("%q{", at.String())
		h.walk(of, v)
		h.write("}")
	} else if owned.Members.Has(at) {
		data, err := json.Marshal(v.Unstructured())
		h.write("%q=%d:%s%v", at.String(), len(data), data, err)
	}
}

// shape is one of the ways in which a set names the items of a list: by keys, by value or by index.
type shape struct {
	keys    []string
	byValue bool
}

// maxShapes bounds the work for a list. The schema of a list has one way; only an entry that
// another client made up under our name has more.
const maxShapes = 4

func shapesOf(owned *fieldpath.Set) (shapes []shape) {
	seen := map[string]bool{}
	add := func(at fieldpath.PathElement) {
		s, name := shape{byValue: at.Value != nil}, fmt.Sprint(at.Value != nil)
		if at.Key != nil {
			for _, field := range *at.Key {
				s.keys, name = append(s.keys, field.Name), name+"\x00"+field.Name
			}
		}
		if at.FieldName == nil && !seen[name] && len(shapes) < maxShapes {
			seen[name], shapes = true, append(shapes, s)
		}
	}
	owned.Members.Iterate(add)
	owned.Children.Iterate(add)
	return shapes
}

// of returns how a set names an item, if it does so in this way.
func (s shape) of(item value.Value, index int) (at fieldpath.PathElement, ok bool) {
	switch {
	case s.byValue:
		at.Value = &item
	case len(s.keys) == 0:
		at.Index = &index
	default:
		if !item.IsMap() {
			return at, false
		}
		m, key := item.AsMap(), make(value.FieldList, 0, len(s.keys))
		for _, name := range s.keys {
			v, found := m.Get(name)
			if !found {
				return at, false
			}
			key = append(key, value.Field{Name: name, Value: v})
		}
		at.Key = &key
	}
	return at, true
}
