// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package create

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

// sibling is how much likelier a field beside an unknown one is meant than one in another place, and least is the
// likeness below which none is.
const (
	sibling = 0.15
	least   = 0.8
)

var index = regexp.MustCompile(`\[\d+\]`)

// nearest returns the path of the field that is likely to be meant by the path of an unknown one: a field beside it that has a
// similar name, or one in another place that has the same name. It is "" if there is none.
func nearest(kind *kinds.Kind, unknown string) (best string) {
	parent, name := cut(index.ReplaceAllString(unknown, "[]"))
	score := least
	if len(name) > 64 {
		return "" // To compare it would take long.
	}
	for _, path := range fieldsOf(reflect.TypeOf(kind.New())) {
		at, last := cut(path)
		likeness := 0.0
		if at == parent {
			likeness = kinds.Likeness(last, name) + sibling
		} else if strings.EqualFold(last, name) {
			likeness = 1
		}
		if likeness > score {
			best, score = path, likeness
		}
	}
	return best
}

// cut returns the path of a field's parent, and the name of the field.
func cut(path string) (parent, name string) {
	at := strings.LastIndexByte(path, '.')
	return path[:max(at, 0)], path[at+1:]
}

// deepest is how many names the path of a known field has at most.
const deepest = 6

// fieldsOf returns the paths of the fields of a type, those with fewer names first, that users set. podTemplate, which has any
// fields by its type, has those of a pod template.
func fieldsOf(t reflect.Type) (out []string) {
	type member struct {
		path string
		of   reflect.Type
	}
	for level := []member{{"", t}}; len(level) > 0; {
		var below []member
		for _, m := range level {
			suffix := ""
			for m.of.Kind() == reflect.Pointer || m.of.Kind() == reflect.Slice {
				if m.of.Kind() == reflect.Slice {
					suffix = "[]"
				}
				m.of = m.of.Elem()
			}
			if strings.HasSuffix(m.path, ".podTemplate") {
				m.of = reflect.TypeFor[corev1.PodTemplateSpec]()
			}
			if m.of.Kind() != reflect.Struct || reflect.PointerTo(m.of).Implements(reflect.TypeFor[json.Unmarshaler]()) {
				continue
			}
			for _, f := range reflect.VisibleFields(m.of) {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				path := strings.TrimPrefix(m.path+suffix+"."+name, ".")
				if name == "" || name == "-" || path == "status" || strings.Count(path, ".") >= deepest {
					continue
				}
				if out = append(out, path); name != "initContainers" { // The containers have the same fields.
					below = append(below, member{path, f.Type})
				}
			}
		}
		level = below
	}
	return out
}
