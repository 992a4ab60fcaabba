// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// overlay gives every field of desired its value in live, and leaves the others as they
// are: what server-side apply does, but also where that ends in an object which the API
// server refuses. It removes the other members of a union, the second item with the keys
// of ours, and ports that cannot stand beside ours.
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
	case f.silent(want):
		if f.member && !f.empty(have) && !f.filledIn(parent, have) {
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

// differ tells whether what is replaced as a whole has to be.
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

// overlayMap is for maps of values without fields of their own, as all granular maps of
// our children are.
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

// overlayItems keeps the order of live, in which the items of other field managers have
// their places, and puts what is missing at its end.
func overlayItems(f *field, want, have reflect.Value) {
	list := reflect.MakeSlice(have.Type(), 0, have.Len()+want.Len())
	taken := make([]bool, want.Len())
	for i := range have.Len() {
		item := have.Index(i)
		at := desiredFor(f, item, want, have, taken)
		if at < 0 && blocks(f, item, want) {
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

// overlayKeys gives an item the keys of the desired one, where these are left to the API
// server as well: a protocol that is left out is TCP, whatever the item's was.
func overlayKeys(keys []field, want, item reflect.Value) {
	if matches(keys, want, item) {
		return
	}
	for i := range keys {
		item.Field(keys[i].index).Set(want.Field(keys[i].index))
	}
}

// desiredFor is the place of the desired item that a live one is to become, or -1: the
// one with its keys, or the port of its name that has been given another number, so that
// it keeps what the API server assigned to it, such as a node port.
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

// blocks tells whether a live item that becomes none of ours cannot stay beside them: it
// has the keys of one, or is a port with the name or the node port of one, or a device of
// the same volume.
func blocks(f *field, item, want reflect.Value) bool {
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

// uniqueFields are the fields, beside its keys, that two items of a list may not share.
var uniqueFields = map[string][]string{
	"ports":         {"name", "nodePort"},
	"volumeDevices": {"name"},
}

// sameField tells whether two items have the same value in a field. No value is none, but
// for the name of a Service's port: a Service has no second port without a name.
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
