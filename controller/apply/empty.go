// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import "reflect"

// isEmptyStruct reports whether the value of a field is a struct in which no field is set,
// such as "securityContext: {}", and which has the same effect as no value. Server-side apply
// removes such a struct from a child together with the last field in it, although it is in
// the apply configuration, so that the child would differ for ever. Empty members of unions
// ("emptyDir: {}") and empty atomic structs ("labelSelector: {}") have an effect.
func isEmptyStruct(f *field, value reflect.Value) bool {
	if _, scalar := scalarsOf(value.Type()); scalar || value.Kind() != reflect.Struct || f.unionMember || f.merge != granular {
		return false
	}
	fields := fieldsOf(value.Type())
	for i := range fields {
		inner := value.Field(fields[i].index)
		if fields[i].unset(inner) {
			continue
		}
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if !isEmptyStruct(&fields[i], inner) {
			return false
		}
	}
	return true
}
