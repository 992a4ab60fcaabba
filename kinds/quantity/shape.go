// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// shape is what is looked up of a type for each value. Reflection takes microseconds for the
// type of a pod, which an object of thousands of values cannot afford.
type shape struct {
	decodesItself bool
	fields        map[string]reflect.Type // By the name in JSON.
	folded        map[string]reflect.Type // By the name in lower case.
}

var shapes sync.Map // By type; there are as many as the kinds have.

func shapeOf(typ reflect.Type) *shape {
	if known, ok := shapes.Load(typ); ok {
		return known.(*shape)
	}
	s := &shape{
		decodesItself: reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()),
		fields:        map[string]reflect.Type{}, folded: map[string]reflect.Type{},
	}
	s.add(typ)
	shapes.Store(typ, s)
	return s
}

// add adds the fields of a struct, and those of the structs that it embeds. It can also embed
// another type, such as the format of a Quantity, which has no fields.
func (s *shape) add(typ reflect.Type) {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct {
		return
	}
	var embedded []reflect.Type
	for f := range typ.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "":
			s.fields[name], s.folded[strings.ToLower(name)] = f.Type, f.Type
		case f.Anonymous || strings.Contains(options, "inline"):
			embedded = append(embedded, f.Type)
		}
	}
	for _, typ := range embedded {
		s.add(typ)
	}
}

// foldedFieldType is FieldType without regard to case, as some decoders read names.
func foldedFieldType(typ reflect.Type, name string) reflect.Type {
	return shapeOf(typ).folded[strings.ToLower(name)]
}

// FieldType returns the type of a struct's field by its name in JSON, nil if it has none.
func FieldType(typ reflect.Type, name string) reflect.Type { return shapeOf(typ).fields[name] }

// DecodesItself reports whether a type has a method UnmarshalJSON.
func DecodesItself(typ reflect.Type) bool { return shapeOf(typ).decodesItself }
