// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// wrongTypes returns the errors of the first values in a tree that a pod template cannot hold. The
// decoder returns one of them, and no path for those that decode themselves, such as quantities.
func wrongTypes(tree any) field.ErrorList {
	s := search{fields: map[reflect.Type]map[string]reflect.Type{}}
	s.value(root, tree, reflect.TypeFor[corev1.PodTemplateSpec]())
	if len(s.errs) == 0 {
		return field.ErrorList{field.Invalid(root, field.OmitValueType{}, "cannot be decoded")}
	}
	return s.errs
}

type search struct {
	errs   field.ErrorList
	fields map[reflect.Type]map[string]reflect.Type // The types of the fields of structs, by their names in JSON.
}

// value descends to the values that have no parts of their own in a type, and decodes these.
func (s *search) value(path *field.Path, value any, t reflect.Type) {
	if value == nil || len(s.errs) >= rules.MaxErrors {
		return
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.TypeOf(value).Kind() == t.Kind() && (t.Kind() == reflect.String || t.Kind() == reflect.Bool) {
		return
	}
	if !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) && s.parts(path, value, t) {
		return
	}
	data, err := json.Marshal(value)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, reflect.New(t).Interface())
	}
	if err != nil {
		s.errs = append(s.errs, wrongType(path, value, err))
	}
}

// parts reports whether a value has parts in a type, and searches them.
func (s *search) parts(path *field.Path, value any, t reflect.Type) bool {
	switch value := value.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
			return false
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if t.Kind() == reflect.Map {
				s.value(path.Key(key), value[key], t.Elem())
			} else if of := s.fieldsOf(t)[key]; of != nil {
				s.value(path.Child(key), value[key], of)
			}
		}
		return true
	case []any:
		if t.Kind() != reflect.Slice {
			return false
		}
		for i, item := range value {
			s.value(path.Index(i), item, t.Elem())
		}
		return true
	}
	return false
}

func (s *search) fieldsOf(t reflect.Type) map[string]reflect.Type {
	if s.fields[t] == nil {
		s.fields[t] = map[string]reflect.Type{}
		for of := range t.Fields() {
			if tag, _, _ := strings.Cut(of.Tag.Get("json"), ","); tag == "" && of.Anonymous {
				maps.Copy(s.fields[t], s.fieldsOf(of.Type))
			} else {
				s.fields[t][tag] = of.Type
			}
		}
	}
	return s.fields[t]
}

// wrongType returns the error of a value of a wrong type. err is the decoder's.
func wrongType(path *field.Path, value any, err error) *field.Error {
	out := field.TypeInvalid(path, field.OmitValueType{}, err.Error())
	mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if ok {
		out.Detail = "must be " + nameOf(mismatch.Type) + ", not " + mismatch.Value
	}
	switch value.(type) {
	case bool, int64, float64:
		out.BadValue = value
		if ok && mismatch.Type.Kind() == reflect.String { // A frequent mistake in YAML.
			out.Detail += fmt.Sprintf(`: write it in quotes ("%v")`, value)
		}
	case string:
		out.BadValue = value
	}
	return out
}

// nameOf returns what JSON calls a type.
func nameOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "a number of type " + t.String()
}
