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
		fields = append(fields, field{index: i, name: name, omitted: strings.Contains(options, "omitempty")})
	}
	known.Store(t, fields)
	return fields
}
