// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// Lists returns bodies in which one list or map, of all that a spec and a pod template can
// have, is as long as the size allows. They are ModelBoxes, which have the lists of the other
// kinds.
func Lists(size int) iter.Seq[Body] {
	k := &Kinds[0]
	return func(yield func(Body) bool) {
		for name, text := range k.lists(size) {
			if !yield(Body{k.Name + ": " + name, k.Paths(), text}) {
				return
			}
		}
	}
}

func (k *Kind) lists(size int) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for at := range containers(reflect.TypeFor[modelv1.ModelBoxSpec](), place{}) {
			if !k.longLists(at, "spec."+at.path, size, yield) {
				return
			}
		}
		template := place{before: `"podTemplate":{`, after: `}`, path: "podTemplate."}
		for at := range containers(reflect.TypeFor[corev1.PodTemplateSpec](), template) {
			if !k.longLists(at, "spec."+at.path, size, yield) {
				return
			}
		}
	}
}

func (k *Kind) longLists(at place, name string, size int, yield func(string, string) bool) bool {
	for of, item := range items(at.typ) {
		spec := "," + at.before + fill(size, item) + at.after
		object := k.Object("", spec)
		if !yield(name+" of "+of, k.Review(object, "")) || !yield(name+" of "+of+", stored", k.Review(k.Object("", spec+`,"paused":true`), object)) {
			return false
		}
	}
	return true
}

// place is where a list or a map of a type is, with the JSON around its items.
type place struct {
	typ                 reflect.Type
	path, before, after string
}

// containers returns all lists and maps in a struct.
func containers(typ reflect.Type, at place) iter.Seq[place] {
	return func(yield func(place) bool) { walk(typ, at, yield) }
}

func walk(typ reflect.Type, at place, yield func(place) bool) bool {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			if f.Type.Kind() == reflect.Struct && !walk(f.Type, at, yield) {
				return false
			}
			continue
		}
		if !walkValue(f.Type, at.in(fmt.Sprintf("%q:", name), "", name), yield) {
			return false
		}
	}
	return true
}

func walkValue(typ reflect.Type, at place, yield func(place) bool) bool {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ.Kind() {
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.Uint8 {
			return true
		}
		in := at.in("[", "]", "[]")
		in.typ = typ
		return yield(in) && walkValue(typ.Elem(), in, yield)
	case reflect.Map:
		in := at.in("{", "}", "{}")
		in.typ = typ
		return yield(in)
	case reflect.Struct:
		if reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()) {
			return true
		}
		return walk(typ, at.in("{", "}", "."), yield)
	}
	return true
}

func (p place) in(before, after, path string) place {
	p.before, p.after, p.path = p.before+before, after+p.after, p.path+path
	return p
}

// items returns what a list or a map can be filled with.
func items(typ reflect.Type) map[string]string {
	of := typ.Elem()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if typ.Kind() == reflect.Map {
		return map[string]string{"empty values": `"%d":""`, "misfits": `"%d":[]`, "zeros": `"a.b/%d":0`}
	}
	switch of.Kind() {
	case reflect.Struct:
		return map[string]string{"empty items": `{}`, "nulls": `null`, "misfits": `7`, "distinct items": distinct(of), "equal items": strings.ReplaceAll(distinct(of), "%d", "a")}
	case reflect.String:
		return map[string]string{"empty texts": `""`, "distinct texts": `"%d "`, "misfits": `[]`}
	}
	return map[string]string{"numbers": `0`, "misfits": `""`}
}

// distinct returns an item with all of its text fields.
func distinct(typ reflect.Type) string {
	var members []string
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Type.Kind() == reflect.String && name != "" {
			members = append(members, fmt.Sprintf(`%q:"%%d"`, name))
		}
		if len(members) == 3 {
			break
		}
	}
	text := strings.Join(members, ",")
	return "{" + strings.ReplaceAll(text, `"%d"`, `"%[1]d"`) + "}"
}
