// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Kubernetes is the minor version of Kubernetes that this release is built for: that of
// the types and the validation in the k8s.io modules of go.mod.
const Kubernetes = "1.37"

// MaxSize is the maximum size of a pod template in bytes, as JSON. A larger one is not decoded. The
// other bounds of a spec apply to it as well, since it has no schema with those of its parts; but one
// that was stored before they existed is still built.
const MaxSize = rules.MaxBytes

// decoded is a pod template.
type decoded struct {
	corev1.PodTemplateSpec
	// tree is the same as JSON, without nulls.
	tree map[string]any
	// large is true if the template exceeds a bound, so that to validate it could cost too much.
	large bool
}

// Decode decodes spec.podTemplate strictly: field names are case-sensitive, and unknown
// fields, duplicate fields and values of a wrong type are errors at their path. The API
// server does not detect them, because the schema of the field preserves unknown fields.
//
// A null means that nothing is set: it is decoded as if its field were not there. Nil and a null
// are no template and no error. There is no template if a value has a wrong type.
func Decode(raw *runtime.RawExtension) (*corev1.PodTemplateSpec, field.ErrorList) {
	out, errs := decode(raw)
	return out.template(), errs
}

func decode(raw *runtime.RawExtension) (*decoded, field.ErrorList) {
	if raw == nil || len(raw.Raw) == 0 || bytes.Equal(raw.Raw, []byte("null")) {
		return nil, nil
	}
	if len(raw.Raw) > MaxSize {
		return nil, rules.MarkUnbuildable(rules.SpecSize(root, raw.Raw)...)
	}
	out := &decoded{}
	duplicates, err := kjson.UnmarshalStrict(raw.Raw, &out.tree)
	if err != nil {
		return nil, rules.MarkUnbuildable(wrongType(root, nil, err))
	}
	errs := rules.Expensive(root, out.tree)
	if out.large = len(errs) > 0; len(rules.Unbuildable(errs)) > 0 {
		return nil, errs
	}
	errs = append(errs, rules.Sorted(takeNoValues(root, out.tree))...)
	unknown, err := strictly(out.tree, &out.PodTemplateSpec)
	if err != nil {
		return nil, append(errs, rules.MarkUnbuildable(wrongTypes(out.tree)...)...)
	}
	return out, append(errs, rules.MarkUnbuildable(strictErrors(append(duplicates, unknown...))...)...)
}

// strictly decodes a tree, and returns the errors of unknown fields, and that of a wrong type.
func strictly(tree any, into *corev1.PodTemplateSpec) (unknown []error, err error) {
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	return kjson.UnmarshalStrict(data, into)
}

// strictErrors converts the strict errors of the decoder.
func strictErrors(strict []error) field.ErrorList {
	var errs field.ErrorList
	for _, err := range strict {
		detail := "Kubernetes " + Kubernetes + ", which this release is built for, has no such field; check its name and its position"
		if strings.HasPrefix(err.Error(), "duplicate") {
			detail = "the field is set twice; remove one of them"
		}
		path := root
		if at, ok := errors.AsType[kjson.FieldError](err); ok {
			path = path.Child(at.FieldPath())
		}
		errs = append(errs, field.Forbidden(path, detail))
	}
	return errs
}

// takeNoValues removes what a strategic merge does not take as a value. Directives, such as $patch, are
// errors: a map of strings may have any key, so the types alone do not refuse them. Nulls would delete
// what the operator generated: in a pod template they mean "not set". In lists they are errors, and are
// built as an empty value, if it can be.
func takeNoValues(path *field.Path, node any) (errs field.ErrorList) {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			switch {
			case strings.HasPrefix(key, "$"):
				errs = append(errs, rules.MarkUnbuildable(field.Forbidden(path.Child(key), "directives of a strategic merge are not supported; remove it"))...)
				delete(node, key)
			case value == nil:
				delete(node, key)
			case rules.HasParts(value):
				errs = append(errs, takeNoValues(path.Child(key), value)...)
			}
		}
	case []any:
		for i, value := range node {
			if value == nil {
				errs = append(errs, field.Required(path.Index(i), "an item may not be null; remove it"))
			} else if rules.HasParts(value) {
				errs = append(errs, takeNoValues(path.Index(i), value)...)
			}
		}
	}
	return errs
}

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
