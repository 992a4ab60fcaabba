// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
)

// drawnName is the name of each random object, and so of its main container.
const drawnName = "web"

var drawnKinds = []struct {
	name string
	spec reflect.Type
}{
	{"ModelBox", reflect.TypeFor[modelv1.ModelBoxSpec]()},
	{"App", reflect.TypeFor[appv1.AppSpec]()},
	{"Genericdaemon", reflect.TypeFor[mydomainv1beta1.GenericdaemonSpec]()},
}

// drawSpec returns a random spec: a valid one, with some features of pods, and up to three
// changes anywhere in it. The same seed returns the same spec.
func drawSpec(seed uint64) drawnSpec {
	d := drawer{rand.New(rand.NewPCG(seed, 11))}
	kind := pick(d, drawnKinds)
	spec := fromYAML(pick(d, validSpecs[kind.name]))
	if d.IntN(8) > 0 {
		template := map[string]any{}
		for range d.IntN(4) {
			merge(template, fromYAML(pick(d, validFeatures)))
		}
		spec["podTemplate"] = template
	}
	for range pick(d, []int{0, 1, 1, 1, 2, 3}) {
		d.change(spec, kind.spec)
	}
	return drawnSpec{kind: kind.name, spec: spec}
}

func fromYAML(text string) map[string]any {
	out := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		panic(text + ": " + err.Error())
	}
	return out
}

// merge merges a tree into another: maps by key, lists by appending, containers by name.
func merge(into, from map[string]any) {
	for key, value := range from {
		switch value := value.(type) {
		case map[string]any:
			if there, ok := into[key].(map[string]any); ok {
				merge(there, value)
				continue
			}
		case []any:
			if there, ok := into[key].([]any); ok {
				into[key] = mergeLists(there, value)
				continue
			}
		}
		into[key] = value
	}
}

func mergeLists(into, from []any) []any {
	for _, item := range from {
		fields, _ := item.(map[string]any)
		i := slices.IndexFunc(into, func(other any) bool {
			named, _ := other.(map[string]any)
			return fields["name"] != nil && named["name"] == fields["name"]
		})
		if i >= 0 {
			merge(into[i].(map[string]any), fields)
		} else {
			into = append(into, item)
		}
	}
	return into
}

type drawer struct{ *rand.Rand }

func pick[T any](d drawer, values []T) T { return values[d.IntN(len(values))] }

// place is a value in a tree, its type, and how to replace it; nil removes it.
type place struct {
	name  string
	of    reflect.Type
	value any
	set   func(any)
}

// places are all values of a tree, from the top down.
func placesIn(p place, into []place) []place {
	into = append(into, p)
	of := indirect(p.of)
	switch value := p.value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			next := place{name: key, value: value[key], set: setter(value, key)}
			if of.Kind() == reflect.Map {
				next.of = of.Elem()
			} else if f, ok := jsonField(of, key); ok {
				next.of = f.of
			} else {
				continue
			}
			into = placesIn(next, into)
		}
	case []any:
		for i := range value {
			into = placesIn(place{name: p.name, of: of.Elem(), value: value[i], set: func(v any) {
				if v == nil {
					p.set(slices.Delete(slices.Clone(value), i, i+1))
					return
				}
				value[i] = v
			}}, into)
		}
	}
	return into
}

func setter(in map[string]any, key string) func(any) {
	return func(v any) {
		if v == nil {
			delete(in, key)
			return
		}
		in[key] = v
	}
}

// change makes one change somewhere in a spec.
func (d drawer) change(spec map[string]any, of reflect.Type) {
	all := placesIn(place{of: of, value: spec}, nil)
	at := all[d.IntN(len(all))]
	if d.IntN(2) == 0 { // Half of all changes are in structs, to which fields can be added.
		structs := slices.DeleteFunc(slices.Clone(all), func(p place) bool { return !isStruct(p.of) })
		at = structs[d.IntN(len(structs))]
	}
	if fields, ok := at.value.(map[string]any); ok && isStruct(at.of) && d.IntN(6) > 0 {
		f := pick(d, jsonFields(indirect(at.of)))
		fields[f.name] = d.value(f.of, f.name, 0)
		return
	}
	switch {
	case at.set == nil:
	case d.IntN(6) == 0:
		at.set(nil)
	case d.IntN(4) == 0:
		d.repeat(at)
	case d.IntN(4) == 0:
		if same := slices.DeleteFunc(all, func(p place) bool { return p.of != at.of }); len(same) > 0 {
			at.set(clone(pick(d, same).value))
		}
	default:
		at.set(d.value(at.of, at.name, 0))
	}
}

// repeat appends an item of a list once more, changed or not.
func (d drawer) repeat(at place) {
	list, ok := at.value.([]any)
	if !ok || len(list) == 0 {
		return
	}
	item := clone(pick(d, list))
	if fields, ok := item.(map[string]any); ok && d.IntN(2) == 0 {
		if of := indirect(at.of).Elem(); isStruct(of) {
			f := pick(d, jsonFields(indirect(of)))
			fields[f.name] = d.value(f.of, f.name, 0)
		}
	}
	at.set(append(slices.Clone(list), item))
}

func clone(value any) any {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return out
}

func indirect(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of == reflect.TypeFor[runtime.RawExtension]() {
		return reflect.TypeFor[corev1.PodTemplateSpec]() // There is one such field.
	}
	return of
}

// leaves are structs that are a scalar in JSON.
var leaves = []reflect.Type{
	reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.FieldsV1](),
}

func isStruct(of reflect.Type) bool {
	of = indirect(of)
	return of.Kind() == reflect.Struct && !slices.Contains(leaves, of)
}

type jsonFieldOf struct {
	name     string
	of       reflect.Type
	optional bool
}

// jsonFields returns the fields that a struct has in JSON, those of embedded structs included.
func jsonFields(of reflect.Type) []jsonFieldOf {
	var out []jsonFieldOf
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || name == "managedFields" || name == "paused": // These do not concern the pods.
		case f.Anonymous && name == "":
			out = append(out, jsonFields(indirect(f.Type))...)
		default:
			out = append(out, jsonFieldOf{name, f.Type, strings.Contains(options, "omit")})
		}
	}
	return out
}

func jsonField(of reflect.Type, name string) (jsonFieldOf, bool) {
	if !isStruct(of) {
		return jsonFieldOf{}, false
	}
	fields := jsonFields(of)
	i := slices.IndexFunc(fields, func(f jsonFieldOf) bool { return f.name == name })
	if i < 0 {
		return jsonFieldOf{}, false
	}
	return fields[i], true
}

// value returns a random value of a type, for a field with a name.
func (d drawer) value(of reflect.Type, name string, depth int) any {
	of = indirect(of)
	switch of {
	case reflect.TypeFor[resource.Quantity]():
		return pick(d, someQuantities)
	case reflect.TypeFor[intstr.IntOrString]():
		return pick(d, portsOrNames)
	case reflect.TypeFor[metav1.Time]():
		return "2020-01-01T00:00:00Z"
	}
	switch of.Kind() {
	case reflect.String:
		return d.text(of, name)
	case reflect.Bool:
		return d.IntN(2) == 0
	case reflect.Struct:
		return d.object(of, depth)
	case reflect.Slice:
		list := []any{}
		for range pick(d, []int{0, 1, 1, 2}) {
			list = append(list, d.value(of.Elem(), name, depth+1))
		}
		return list
	case reflect.Map:
		out := map[string]any{}
		for range pick(d, []int{0, 1, 1, 2}) {
			out[d.key(of, name)] = d.value(of.Elem(), "value", depth+1)
		}
		return out
	case reflect.Int32, reflect.Int64, reflect.Int:
		return pick(d, someNumbers)
	}
	return nil
}

// object returns random fields of a struct. A struct whose fields are structs themselves is
// mostly a union, of which one field should be set.
func (d drawer) object(of reflect.Type, depth int) map[string]any {
	fields := jsonFields(of)
	out := map[string]any{}
	var members []jsonFieldOf
	for _, f := range fields {
		switch {
		case f.of.Kind() == reflect.Pointer && isStruct(f.of):
			members = append(members, f)
		case !f.optional || d.IntN(3+3*depth) == 0:
			out[f.name] = d.value(f.of, f.name, depth+1)
		}
	}
	if len(members) > 0 && depth < 6 {
		for range pick(d, []int{0, 1, 1, 1, 1, 1, 1, 2}) {
			f := pick(d, members)
			out[f.name] = d.value(f.of, f.name, depth+1)
		}
	}
	return out
}

// text returns a random string: for a named string type mostly one of its constants.
func (d drawer) text(of reflect.Type, name string) string {
	if d.IntN(12) == 0 {
		return pick(d, oddities)
	}
	if values, ok := constants[of.Name()]; ok {
		return pick(d, values)
	}
	if values, ok := texts[name]; ok {
		return pick(d, values)
	}
	return pick(d, words)
}

func (d drawer) key(of reflect.Type, name string) string {
	if of.Key() == reflect.TypeFor[corev1.ResourceName]() {
		return pick(d, constants["ResourceName"])
	}
	if values, ok := keys[name]; ok {
		return pick(d, values)
	}
	return pick(d, []string{"a", "b", "example.com/a", "", "a b"})
}
