// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import "reflect"

// DropEmpty removes, from what a pointer to a struct leads to, the structs in which
// nothing is set, such as "securityContext: {}". They have no meaning, and server-side
// apply removes one from a child when it removes the last field in it, although it is in
// the configuration: the child would differ for ever. Members of unions ("emptyDir: {}")
// and structs that are merged as a whole ("labelSelector: {}") stay: they have a meaning
// when they are empty.
func DropEmpty(pointer any) { dropEmpty(reflect.ValueOf(pointer).Elem()) }

// dropEmpty reports whether nothing is left of a struct.
func dropEmpty(value reflect.Value) (nothing bool) {
	nothing = true
	fields := fieldsOf(value.Type())
	for i := range fields {
		f, inner := &fields[i], value.Field(fields[i].index)
		if f.silent(inner) {
			continue
		}
		if dropEmptyField(f, inner) {
			if inner.Kind() == reflect.Pointer {
				inner.SetZero()
			}
			continue
		}
		nothing = false
	}
	return nothing
}

func dropEmptyField(f *field, value reflect.Value) (nothing bool) {
	of := value
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if _, scalar := scalarsOf(of.Type()); scalar {
		return false
	}
	switch of.Kind() {
	case reflect.Slice:
		if of.Type().Elem().Kind() == reflect.Struct && f.merge == keyed {
			for i := range of.Len() {
				dropEmpty(of.Index(i))
			}
		}
		return false
	case reflect.Struct:
		return f.merge == granular && dropEmpty(of) && !f.member
	default:
		return false
	}
}
