// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

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
		return nil, append(errs, rules.MarkUnbuildable(wrongTypes(root, out.tree, func(v any) any { return v })...)...)
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

// wrongTypes returns the errors of the first values in a tree that a pod template cannot hold. The decoder
// returns one of them, and no path for those that decode themselves, such as quantities. So of a value that it
// refuses, each part is decoded alone. in puts a value at its place in an otherwise empty tree.
func wrongTypes(path *field.Path, value any, in func(any) any) (errs field.ErrorList) {
	_, err := strictly(in(value), &corev1.PodTemplateSpec{})
	if err == nil {
		return nil
	}
	part := func(path *field.Path, value any, in func(any) any) {
		if len(errs) < rules.MaxErrors {
			errs = append(errs, wrongTypes(path, value, in)...)
		}
	}
	switch value := value.(type) {
	case map[string]any:
		// A struct has no such field, a map may have any key, and for other types an object is a wrong value itself.
		unknown, noObject := strictly(in(map[string]any{"": nil}), &corev1.PodTemplateSpec{})
		for _, key := range slices.Sorted(maps.Keys(value)) {
			at := path.Key(key)
			if len(unknown) > 0 {
				at = path.Child(key)
			}
			if noObject == nil {
				part(at, value[key], func(v any) any { return in(map[string]any{key: v}) })
			}
		}
	case []any:
		if _, noList := strictly(in([]any{}), &corev1.PodTemplateSpec{}); noList == nil {
			for i, item := range value {
				part(path.Index(i), item, func(v any) any { return in([]any{v}) })
			}
		}
	}
	if len(errs) > 0 {
		return errs
	}
	return field.ErrorList{wrongType(path, value, err)}
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
