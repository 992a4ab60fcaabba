// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"strings"
	"sync"
)

// field is a field of a struct as JSON has it.
type field struct {
	index int
	// name is its name, "" if its own fields stand in its place.
	name string
	// omitted says that it is left out where it is empty.
	omitted bool
	// merge is how server-side apply merges it, and keys are the fields that identify
	// an item where it is a keyed list.
	merge merge
	keys  []field
	// member says that it is a member of a union: where desired leaves it out, it must
	// not be there.
	member bool
	// isDefault tells whether the API server filled in a value that desired leaves out;
	// it may be nil.
	isDefault func(desired, value reflect.Value) bool
}

// silent says whether JSON leaves the field out with that value, or has a null there,
// which says nothing either.
func (f *field) silent(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		return value.IsNil()
	case reflect.Map, reflect.Slice:
		return value.IsNil() || f.omitted && value.Len() == 0
	case reflect.Struct:
		return false
	default:
		return f.omitted && value.IsZero()
	}
}

var known sync.Map // of []field, by reflect.Type

// fieldsOf are the fields of a type of struct, in their order.
func fieldsOf(t reflect.Type) []field {
	if fields, ok := known.Load(t); ok {
		return fields.([]field)
	}
	var fields []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag.Get("json")
		if tag == "-" || !t.Field(i).IsExported() {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		f := field{index: i, name: name, omitted: strings.Contains(options, "omitempty")}
		if name != "" {
			f.describe(t, t.Field(i).Type)
		}
		fields = append(fields, f)
	}
	known.Store(t, fields)
	return fields
}

// describe fills in what the tables in schema.go say of the field.
func (f *field) describe(parent, t reflect.Type) {
	at := fieldOf{parent, f.name}
	f.merge, f.keys = mergeOf(at, t)
	f.member = unionMembers[at] || wholeUnions[parent]
	f.isDefault = defaults[at]
}
