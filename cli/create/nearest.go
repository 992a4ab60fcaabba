// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package create

import (
	"reflect"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

var index = regexp.MustCompile(`\[\d+\]`)

// nearest returns the path of the field that is likely to be meant by the path of an unknown one: a
// field beside it that has a similar name, or the one with the same name and the shortest path. It
// is "" if there is none.
func nearest(kind *kinds.Kind, unknown string) (best string) {
	const beside, least = 0.15, 0.8
	parent, name := cut(index.ReplaceAllString(unknown, "[]"))
	score := least
	if len(name) > 64 {
		return "" // To compare it would take long.
	}
	walk(reflect.TypeOf(kind.New()), "", func(path string) {
		likeness := 0.0
		if at, last := cut(path); at == parent {
			likeness = kinds.Likeness(last, name) + beside
		} else if strings.EqualFold(last, name) {
			likeness = 1
		}
		if likeness > score || likeness == score && strings.Count(path, ".") < strings.Count(best, ".") {
			best, score = path, likeness
		}
	})
	return best
}

// cut returns the path of a field's parent, and the name of the field.
func cut(path string) (parent, name string) {
	at := strings.LastIndexByte(path, '.')
	return path[:max(at, 0)], path[at+1:]
}

// walk calls visit with the paths of the fields of a type that users set. podTemplate, whose type
// has any fields, has those of a pod template. Init containers have the fields of containers.
func walk(t reflect.Type, path string, visit func(string)) {
	for ; t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice; t = t.Elem() {
		path += map[reflect.Kind]string{reflect.Slice: "[]"}[t.Kind()]
	}
	if strings.HasSuffix(path, ".podTemplate") {
		t = reflect.TypeFor[corev1.PodTemplateSpec]()
	}
	if t.Kind() != reflect.Struct || strings.Count(path, ".") > 5 {
		return
	}
	for _, f := range reflect.VisibleFields(t) {
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name {
		case "", "-", "status", "initContainers":
		default:
			at := strings.TrimPrefix(path+"."+name, ".")
			visit(at)
			walk(f.Type, at, visit)
		}
	}
}
