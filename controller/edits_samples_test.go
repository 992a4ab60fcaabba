// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// samples are valid values for the fields of Kubernetes' types.
type samples struct {
	// fields are values by "Type.field".
	fields map[string][]any
	// types are values by "Type".
	types map[string][]any
	// whole are all values of a type with a discriminator that can be swapped.
	whole map[string][]any
}

func readSamples(file string) (samples, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return samples{}, err
	}
	var read struct {
		Fields map[string][]any `json:"fields"`
		Types  map[string][]any `json:"types"`
		Whole  map[string][]any `json:"whole"`
	}
	if err := yaml.UnmarshalStrict(data, &read, useInt64); err != nil {
		return samples{}, err
	}
	return samples{fields: integers(read.Fields), types: integers(read.Types), whole: integers(read.Whole)}, nil
}

func useInt64(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}

func integers(of map[string][]any) map[string][]any {
	for key, values := range of {
		of[key] = integer(values).([]any)
	}
	return of
}

// integer converts numbers as the API's own decoder does.
func integer(value any) any {
	switch value := value.(type) {
	case json.Number:
		n, err := value.Int64()
		if err != nil {
			f, _ := value.Float64()
			return f
		}
		return n
	case tree:
		for key := range value {
			value[key] = integer(value[key])
		}
	case []any:
		for i := range value {
			value[i] = integer(value[i])
		}
	}
	return value
}

// of returns values for an unset field.
func (s samples) of(all schemas, w where) []any {
	if values, ok := s.fields[w.place]; ok {
		return values
	}
	return s.ofType(all, w.of, 0)
}

func (s samples) ofType(all schemas, t *typeSchema, depth int) []any {
	if values, ok := s.types[t.name]; ok {
		return values
	}
	switch {
	case depth > 4:
		return nil
	case len(t.Enum) > 0:
		return slices.DeleteFunc(slices.Clone(t.Enum), func(value any) bool { return value == "" })
	case t.Items != nil:
		var lists []any
		for _, item := range s.ofType(all, all.of(t.Items), depth+1) {
			lists = append(lists, []any{item})
		}
		return lists
	case t.Values != nil:
		return s.object(all, t, []string{"extra"}, depth)
	case len(t.Properties) > 0:
		return s.object(all, t, t.Required, depth)
	}
	return plain(t)
}

// object returns an object with its required fields.
func (s samples) object(all schemas, t *typeSchema, required []string, depth int) []any {
	object := tree{}
	for _, key := range required {
		values, ok := s.fields[t.name+"."+key]
		if !ok {
			values = s.ofType(all, all.child(t, key), depth+1)
		}
		if len(values) == 0 {
			return nil
		}
		object[key] = values[0]
	}
	return []any{object}
}

func plain(t *typeSchema) []any {
	switch {
	case t.Type == "boolean":
		return []any{true, false}
	case t.Type == "integer":
		return []any{int64(7), int64(1)}
	case t.Format == "date-time":
		return []any{"2026-01-02T03:04:05Z"}
	case t.Type == "string":
		return []any{"extra"}
	}
	return nil
}

// others returns values that a field may have instead of its value.
func (s samples) others(w where, value any) []any {
	var others []any
	if values, ok := s.fields[w.place]; ok {
		others = append(others, values...)
	} else if values, ok := s.types[w.of.name]; ok {
		others = append(others, values...)
	}
	others = append(others, w.of.Enum...)
	switch value := value.(type) {
	case string:
		others = append(others, value+"x", strings.TrimSuffix(value, "x")+"0", "1"+value)
	case int64:
		others = append(others, value+1, value-1)
	case bool:
		others = append(others, !value)
	}
	return slices.DeleteFunc(others, func(other any) bool { return reflect.DeepEqual(other, value) || other == "" })
}

// extra returns items to be added to a list.
func (s samples) extra(all schemas, w where, last any) []any {
	object, ok := last.(tree)
	if !ok {
		return s.others(w.item(all, 0, last), last)
	}
	var extras []any
	if values, ok := s.types[w.item(all, 0, last).of.name]; ok {
		extras = append(extras, values...)
	}
	renamed := maps.Clone(object)
	for _, key := range append([]string{"name"}, w.of.ListKeys...) {
		switch value := object[key].(type) {
		case string:
			if key != "protocol" {
				renamed[key] = value + "-extra"
			}
		case int64:
			renamed[key] = value + 1
		}
	}
	return append(extras, renamed)
}
