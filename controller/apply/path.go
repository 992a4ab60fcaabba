// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"reflect"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// path is the path of a field in an object.
type path []step

// step is one element of a path: a field or map key by its name, an item of an atomic list by
// its index, one of a keyed list by its keys, one of a set by its value.
type step struct {
	name    string
	index   int
	isIndex bool
	keys    []field
	item    reflect.Value
	// inAtomic is true for a step within an atomic value, which has no owner of its own.
	inAtomic bool
}

// String returns the path as kubectl explain writes it, with list items by their keys:
// spec.template.spec.containers[name=main].image.
func (p path) String() string {
	var b strings.Builder
	for i := range p {
		text := p[i].text()
		if i > 0 && text[0] != '[' {
			b.WriteByte('.')
		}
		b.WriteString(text)
	}
	return b.String()
}

func (s *step) text() string {
	switch {
	case s.isIndex:
		return fmt.Sprintf("[%d]", s.index)
	case s.keys == nil && s.item.IsValid():
		return fmt.Sprintf("[%v]", s.item)
	case s.keys == nil:
		return s.name
	}
	var parts []string
	for i := range s.keys {
		if value := s.item.Field(s.keys[i].index); !s.keys[i].unset(value) {
			parts = append(parts, fmt.Sprintf("%s=%v", s.keys[i].name, value))
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// owned returns the path as managedFields has it. It ends with the first atomic field.
func (p path) owned() fieldpath.Path {
	owned := make(fieldpath.Path, 0, len(p))
	for i := range p {
		if p[i].inAtomic {
			break
		}
		owned = append(owned, p[i].element())
	}
	return owned
}

func (s *step) element() fieldpath.PathElement {
	switch {
	case s.keys == nil && s.item.IsValid():
		return fieldpath.ValueElement(value.NewValueInterface(jsonValue(s.item)))
	case s.keys == nil:
		return fieldpath.FieldNameElement(s.name)
	}
	fields := make([]any, 0, 2*len(s.keys))
	for i := range s.keys {
		key := s.item.Field(s.keys[i].index)
		if s.keys[i].name == "protocol" {
			fields = append(fields, s.keys[i].name, protocol(key))
			continue
		}
		fields = append(fields, s.keys[i].name, jsonValue(key))
	}
	return fieldpath.KeyElementByFields(fields...)
}

// jsonValue returns the value of a key as in decoded JSON.
func jsonValue(value reflect.Value) any {
	if value.CanInt() {
		return value.Int()
	}
	return value.String()
}
