// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import "reflect"

// meaningless tells whether the value of a field is a struct in which nothing is set, such
// as "securityContext: {}", and which says no more than none does. Server-side apply
// removes such a struct from a child together with the last field in it, although it is in
// the configuration: without this the child would differ for ever. Members of unions
// ("emptyDir: {}") and structs that are merged as a whole ("labelSelector: {}") have a
// meaning when they are empty.
func meaningless(f *field, value reflect.Value) bool {
	if _, scalar := scalarsOf(value.Type()); scalar || value.Kind() != reflect.Struct || f.member || f.merge != granular {
		return false
	}
	fields := fieldsOf(value.Type())
	for i := range fields {
		inner := value.Field(fields[i].index)
		if fields[i].silent(inner) {
			continue
		}
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if !meaningless(&fields[i], inner) {
			return false
		}
	}
	return true
}
