// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// overlay sets every field of desired in live and keeps the others. This is what server-side
// apply does, but overlay also returns a valid object where an apply is refused: it removes
// the other members of a union, a second item with the keys of a desired one, and ports that
// conflict with desired ones.
func overlay(desired, live client.Object) {
	want, have := reflect.ValueOf(desired).Elem(), reflect.ValueOf(live).Elem()
	fields := fieldsOf(want.Type())
	for i := range fields {
		if name := fields[i].name; name != "" && name != "status" {
			overlayField(&fields[i], want, have)
		}
	}
}

func overlayStruct(want, have reflect.Value) {
	fields := fieldsOf(want.Type())
	for i := range fields {
		overlayField(&fields[i], want, have)
	}
}

func overlayField(f *field, parent, live reflect.Value) {
	want, have := parent.Field(f.index), live.Field(f.index)
	switch {
	case f.name == "":
		overlayStruct(want, have)
	case f.unset(want):
		if f.unionMember && !f.empty(have) && !f.hasDefault(parent, have) {
			have.SetZero()
		}
	case f.merge == keyed:
		overlayItems(f, want, have)
	case f.merge == atomic:
		if differ(want, have, f) {
			have.Set(want)
		}
	case f.merge == set:
		overlaySet(want, have)
	default:
		overlayValue(want, have)
	}
}

func overlaySet(want, have reflect.Value) {
	for i := range want.Len() {
		if !contains(have, want.Index(i)) {
			have.Set(reflect.Append(have, want.Index(i)))
		}
	}
}

// differ reports whether an atomic value is not the desired one.
func differ(want, have reflect.Value, f *field) bool {
	c := comparison{}
	c.values(want, have, true, f)
	return c.count > 0
}

func overlayValue(want, have reflect.Value) {
	if _, scalar := scalarsOf(want.Type()); scalar {
		if differ(want, have, nil) {
			have.Set(want)
		}
		return
	}
	switch want.Kind() {
	case reflect.Pointer:
		if have.IsNil() {
			have.Set(want)
			return
		}
		overlayValue(want.Elem(), have.Elem())
	case reflect.Struct:
		overlayStruct(want, have)
	case reflect.Map:
		overlayMap(want, have)
	default:
		have.Set(want)
	}
}

// overlayMap overlays a map whose values have no fields, as all granular maps of children.
func overlayMap(want, have reflect.Value) {
	if have.IsNil() {
		have.Set(reflect.MakeMap(have.Type()))
	}
	for entry := want.MapRange(); entry.Next(); {
		live := have.MapIndex(entry.Key())
		if !live.IsValid() || differ(entry.Value(), live, nil) {
			have.SetMapIndex(entry.Key(), entry.Value())
		}
	}
}

// overlayItems overlays a keyed list. It keeps the order of live, which has items of other
// field managers, and appends the desired items that are missing.
func overlayItems(f *field, want, have reflect.Value) {
	list := reflect.MakeSlice(have.Type(), 0, have.Len()+want.Len())
	taken := make([]bool, want.Len())
	for i := range have.Len() {
		item := have.Index(i)
		at := desiredFor(f, item, want, have, taken)
		if at < 0 && conflicts(f, item, want) {
			continue
		}
		if at >= 0 {
			taken[at] = true
			overlayValue(want.Index(at), item)
			overlayKeys(f.keys, want.Index(at), item)
		}
		list = reflect.Append(list, item)
	}
	for i := range want.Len() {
		if !taken[i] {
			list = reflect.Append(list, want.Index(i))
		}
	}
	have.Set(list)
}

// overlayKeys sets the keys of the desired item, also those that the API server defaults: a
// protocol that is unset is TCP, whatever the item's was.
func overlayKeys(keys []field, want, item reflect.Value) {
	if matches(keys, want, item) {
		return
	}
	for i := range keys {
		item.Field(keys[i].index).Set(want.Field(keys[i].index))
	}
}

// desiredFor returns the index of the desired item for a live one, or -1. It is the item with
// the same keys, or else the port with the same name and another number, which keeps what the
// API server assigned to it, such as a node port.
func desiredFor(f *field, item, want, have reflect.Value, taken []bool) int {
	renumbered := -1
	for i := range want.Len() {
		switch other := want.Index(i); {
		case taken[i]:
		case matches(f.keys, other, item):
			return i
		case f.name == "ports" && sameField("name", other, item) && count(f.keys, item, want)+count(f.keys, other, have) == 0:
			renumbered = i
		}
	}
	return renumbered
}

// conflicts reports whether a live item that is not desired cannot stay beside the desired
// ones: it has the keys of one, or is a port with the name or the node port of one, or a
// device of the same volume.
func conflicts(f *field, item, want reflect.Value) bool {
	if count(f.keys, item, want) > 0 {
		return true
	}
	for i := range want.Len() {
		for _, unique := range uniqueFields[f.name] {
			if sameField(unique, want.Index(i), item) {
				return true
			}
		}
	}
	return false
}

// uniqueFields are the fields, beside the keys, whose values must be unique in a list.
var uniqueFields = map[string][]string{
	"ports":         {"name", "nodePort"},
	"volumeDevices": {"name"},
}

// sameField reports whether two items have the same value in a field. Two unset values are
// not the same, except for the name of a Service's port: only one port may have no name.
func sameField(name string, a, b reflect.Value) bool {
	for _, f := range fieldsOf(a.Type()) {
		if f.name == name {
			value := a.Field(f.index)
			named := name == "name" && a.Type() == reflect.TypeFor[corev1.ServicePort]()
			return value.Equal(b.Field(f.index)) && (named || !value.IsZero())
		}
	}
	return false
}
