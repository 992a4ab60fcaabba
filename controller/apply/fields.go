// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"strings"
	"sync"
)

// field is a field of a Go struct in its JSON form.
type field struct {
	index int
	// name is the name of the field, "" if its own fields are inlined.
	name string
	// omitEmpty is true if JSON omits the field where it is empty.
	omitEmpty bool
	// merge is how server-side apply merges the field; keys are the fields that identify an
	// item if it is a keyed list.
	merge merge
	keys  []field
	// unionMember is true for a member of a union: if it is unset in the desired state, it
	// must be unset.
	unionMember bool
	// isDefault reports whether a value is the API server's default for a field that is unset
	// in the desired state; it may be nil.
	isDefault func(desired, value reflect.Value) bool
}

// unset reports whether JSON omits the field with this value, or has a null, which has the
// same effect.
func (f *field) unset(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		return value.IsNil()
	case reflect.Map, reflect.Slice:
		return value.IsNil() || f.omitEmpty && value.Len() == 0
	case reflect.Struct:
		return false
	default:
		return f.omitEmpty && value.IsZero()
	}
}

// fieldCache has the []field of each reflect.Type.
var fieldCache sync.Map

// fieldsOf returns the fields of a struct type, in their order.
func fieldsOf(t reflect.Type) []field {
	if fields, ok := fieldCache.Load(t); ok {
		return fields.([]field)
	}
	var fields []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag.Get("json")
		if tag == "-" || !t.Field(i).IsExported() {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		f := field{index: i, name: name, omitEmpty: strings.Contains(options, "omitempty")}
		if name != "" {
			f.addSchema(t, t.Field(i).Type)
		}
		fields = append(fields, f)
	}
	fieldCache.Store(t, fields)
	return fields
}

// addSchema fills in what the tables in schema.go have for the field.
func (f *field) addSchema(parent, t reflect.Type) {
	at := fieldOf{parent, f.name}
	f.merge, f.keys = mergeOf(at, t)
	f.unionMember = unionMembers[at] || unionTypes[parent]
	f.isDefault = defaults[at]
}
