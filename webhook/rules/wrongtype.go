// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// maxTries and maxBytes bound the work that one bad template can ask for: how often
// something is decoded, and how much of it, in times of the template's length.
const (
	maxTries = 5000
	maxBytes = 100
)

// undecodable says what in a pod template cannot be decoded, given the decoder's
// own error. The decoder reports the first wrong value alone, without the index of a
// list that it is in, and with no path at all if the type decodes itself, as a
// quantity does. So the template is taken apart: one value at a time is decoded
// under nothing but the names that lead to it, and a value that cannot be decoded
// while its parts can is a wrong one. That needs no knowledge of the types.
func undecodable(raw []byte, err error) field.ErrorList {
	var tree any
	s := search{tries: maxTries, bytes: maxBytes * (len(raw) + 1<<10)}
	if kjson.UnmarshalCaseSensitivePreserveInts(raw, &tree) == nil {
		s.isWrong(nil, podTemplate, tree)
	}
	if len(s.errs) == 0 {
		return field.ErrorList{field.Invalid(podTemplate, field.OmitValueType{}, err.Error())}
	}
	rest, _ := json.Marshal(tree) // It was decoded from JSON.
	unknown, _ := kjson.UnmarshalStrict(rest, &corev1.PodTemplateSpec{})
	return append(s.errs, misspelt(unknown)...)
}

type search struct {
	errs  field.ErrorList
	tries int
	bytes int
}

// wrap puts a value where it was found.
type wrap func(value any) any

// isWrong says whether a value itself is of the wrong type. It reports it then, and
// otherwise what is wrong within it, which it sets to null.
func (s *search) isWrong(outside []wrap, path *field.Path, value any) bool {
	if err := s.try(outside, empty(value)); err != nil {
		s.errs = append(s.errs, wrongType(path, value, err))
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			in := func(v any) any { return map[string]any{key: v} }
			if s.failsWith(outside, in, value[key]) && s.isWrong(append(outside, in), path.Child(key), value[key]) {
				value[key] = nil
			}
		}
	case []any:
		in := func(v any) any { return []any{v} }
		for i := range value {
			if s.failsWith(outside, in, value[i]) && s.isWrong(append(outside, in), path.Index(i), value[i]) {
				value[i] = nil
			}
		}
	}
	return false
}

func (s *search) failsWith(outside []wrap, in wrap, value any) bool {
	return s.try(append(outside, in), value) != nil
}

// try decodes a template of one value.
func (s *search) try(outside []wrap, value any) error {
	if s.tries--; s.tries < 0 || s.bytes < 0 {
		return nil
	}
	for _, in := range slices.Backward(outside) {
		value = in(value)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	s.bytes -= len(data)
	return kjson.UnmarshalCaseSensitivePreserveInts(data, &corev1.PodTemplateSpec{})
}

// empty is the value without its parts.
func empty(value any) any {
	switch value.(type) {
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	}
	return value
}

func wrongType(path *field.Path, value any, err error) *field.Error {
	switch value.(type) {
	case map[string]any, []any:
		value = field.OmitValueType{}
	}
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return field.TypeInvalid(path, value, "must be of type "+mismatch.Type.String()+", not "+mismatch.Value)
	}
	return field.TypeInvalid(path, value, err.Error())
}
