// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"encoding/json"
	"fmt"
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

	"github.com/modelbox-operator/modelbox-operator/kinds/all"
)

// specs are the types of the specs of Kinds.
var specs = func() (out []reflect.Type) {
	for _, kind := range all.Kinds {
		spec, _ := reflect.TypeOf(kind.New()).Elem().FieldByName("Spec") // Every kind has one.
		out = append(out, spec.Type)
	}
	return out
}()

// A Shape is a review that is written in few words: a value of the form {"$n": 7, "of": x} stands for x
// 7 times in a list, {"$n": 7, "key": "k%d", "of": x} under any name for 7 members of an object, and
// {"$n": 7, "text": "x"} for a text, {"$n": 7, "deep": "x"} for objects in each other.
type Shape struct {
	// Kind is the index in Kinds.
	Kind int `json:"kind"`
	// Stored is what is stored: nothing, "" for a create; the same with another image ("other") or label
	// ("label"), or the metadata with a minimal spec ("minimal").
	Stored   string `json:"stored,omitempty"`
	Metadata any    `json:"metadata,omitempty"`
	Spec     any    `json:"spec"`
}

// Text returns the review.
func (s *Shape) Text() string {
	k := &Kinds[s.Kind]
	object := func(spec any, extra string) string {
		return fmt.Sprintf(`{"apiVersion":"%s/%s","kind":%q,"metadata":{"name":"a","namespace":"team"%s%s},"spec":%s}`,
			k.Group, k.Version, k.Name, members(s.Metadata), extra, written(spec))
	}
	switch s.Stored {
	case "other":
		return k.Review(object(s.Spec, ""), strings.Replace(object(s.Spec, ""), `"spec":{`, `"spec":{"paused":true,"historyLimit":7,`, 1))
	case "label":
		return k.Review(object(s.Spec, `,"labels":{"a":"b"}`), object(s.Spec, ""))
	case "minimal":
		return k.Review(object(s.Spec, ""), k.Object("", ""))
	}
	return k.Review(object(s.Spec, ""), "")
}

func members(object any) string {
	text := strings.TrimSuffix(strings.TrimPrefix(written(object), "{"), "}")
	if text == "" || text == "null" {
		return ""
	}
	return "," + text
}

func written(node any) string {
	var b strings.Builder
	write(&b, node)
	return b.String()
}

func write(b *strings.Builder, node any) {
	switch node := node.(type) {
	case map[string]any:
		if !repeated(b, node) {
			b.WriteByte('{')
			for i, key := range slices.Sorted(maps.Keys(node)) {
				writeMember(b, i, key, node[key])
			}
			b.WriteByte('}')
		}
	case []any:
		b.WriteByte('[')
		for i, item := range node {
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, item)
		}
		b.WriteByte(']')
	default:
		text, _ := json.Marshal(node)
		b.Write(text)
	}
}

func writeMember(b *strings.Builder, i int, key string, value any) {
	if i > 0 {
		b.WriteByte(',')
	}
	if of, ok := value.(map[string]any); ok && of["key"] != nil && of["$n"] != nil {
		text := fmt.Sprintf("%q:%s", of["key"], written(of["of"]))
		b.WriteString(times(of, text, ","))
		return
	}
	fmt.Fprintf(b, "%q:", key)
	write(b, value)
}

// repeated writes what stands for several values, as one value.
func repeated(b *strings.Builder, of map[string]any) bool {
	switch {
	case of["$n"] == nil:
		return false
	case of["text"] != nil:
		fmt.Fprintf(b, `"%s"`, times(of, strings.Trim(written(of["text"]), `"`), ""))
	case of["deep"] != nil:
		b.WriteString(times(of, written(map[string]any{of["deep"].(string): 0})[:len(of["deep"].(string))+4], "") + "0" + times(of, "}", ""))
	case of["key"] != nil:
		b.WriteString("{" + times(of, fmt.Sprintf("%q:%s", of["key"], written(of["of"])), ",") + "}")
	default:
		b.WriteString(times(of, written(of["of"]), ","))
	}
	return true
}

func times(of map[string]any, text, separator string) string {
	n := min(int(of["$n"].(float64)), (4<<20)/(len(text)+1))
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(text, "%d", fmt.Sprint(i))
	}
	return strings.Join(parts, separator)
}

// Full returns a shape with every field of each kind.
func Full(kind int) *Shape {
	return &Shape{Kind: kind, Spec: example(specs[kind]), Metadata: map[string]any{}}
}

// examples are values of types with their own JSON.
var examples = map[reflect.Type]any{
	reflect.TypeFor[resource.Quantity]():  1.0,
	reflect.TypeFor[intstr.IntOrString](): 1.0,
	reflect.TypeFor[metav1.Time]():        "2026-01-01T00:00:00Z",
	reflect.TypeFor[metav1.MicroTime]():   "2026-01-01T00:00:00Z",
	reflect.TypeFor[metav1.FieldsV1]():    map[string]any{"f:spec": map[string]any{}},
}

// example returns a value of a type with all of its fields.
func example(t reflect.Type) any {
	if of, ok := examples[t]; ok {
		return clone(of)
	}
	if t == reflect.TypeFor[runtime.RawExtension]() {
		t = reflect.TypeFor[corev1.PodTemplateSpec]()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return example(t.Elem())
	case reflect.String:
		return "a"
	case reflect.Bool:
		return true
	case reflect.Slice:
		return []any{example(t.Elem())}
	case reflect.Map:
		return map[string]any{"a": example(t.Elem())}
	case reflect.Struct:
		return fields(t)
	}
	return 1.0
}

func fields(t reflect.Type) map[string]any {
	out := map[string]any{}
	for f := range t.Fields() {
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case name != "" && name != "-":
			out[name] = example(f.Type)
		case name == "" && f.Type.Kind() == reflect.Struct:
			maps.Copy(out, fields(f.Type))
		}
	}
	return out
}

// A Search makes new shapes of those that cost the most so far.
type Search struct {
	*rand.Rand
	// known are the members of all objects in the full examples, by the name of the field that has
	// the object.
	known map[string][]member
}

type member struct {
	name  string
	value any
}

// NewSearch returns a search with a seed.
func NewSearch(seed uint64) *Search {
	s := &Search{rand.New(rand.NewPCG(seed, 0)), map[string][]member{}}
	for i := range Kinds {
		s.learn("spec", Full(i).Spec)
	}
	s.learn("metadata", example(reflect.TypeFor[metav1.ObjectMeta]()))
	return s
}

func (s *Search) learn(key string, node any) {
	switch node := node.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(node)) {
			s.known[key] = append(s.known[key], member{name, node[name]})
			s.learn(name, node[name])
		}
	case []any:
		for _, item := range node {
			s.learn(key, item)
		}
	}
}

// atoms are values that something may take long to read, to validate or to quote.
var atoms = []string{
	`1`, `-1`, `0`, `0.5`, `null`, `true`, `""`, `[]`, `{}`, `"A B"`, `"a"`, `"1e-99"`, `"1e99"`, `1e-99`, `"1e999999999"`, `"1"`, `"a%d"`, `"a.b/%d"`, `"%d "`, `9007199254740993`,
	`"hugepages-1e99"`, `"$(A)"`, `"\u0000<"`, `"TCP"`, `"In"`, `{"$n":100,"text":"a."}`, `{"$n":3000,"text":"A"}`, `{"$n":500,"text":"\u0000"}`, `{"$n":100,"text":"[1]"}`,
	`{"$n":20,"deep":"a"}`, `{"$n":60,"deep":"spec"}`, `{"$n":1000,"key":"a%d","of":{}}`, `{"$n":1000,"key":"a.b/%d","of":"1e-99"}`, `{"$n":1000,"key":"a","of":1}`,
	`{"$n":1000,"key":"hugepages-%d","of":"1e-99"}`, `{"$n":1000,"key":"f:a%d","of":{}}`, `[{"$n":1000,"of":{}}]`, `[{"$n":500,"of":"a%d"}]`, `[{"$n":500,"of":null}]`,
}

func (s *Search) atom() any {
	var value any
	_ = json.Unmarshal([]byte(atoms[s.IntN(len(atoms))]), &value)
	return value
}

// Mutate returns another shape with some changes.
func (s *Search) Mutate(of *Shape) *Shape {
	out := &Shape{Kind: of.Kind, Stored: of.Stored, Spec: clone(of.Spec), Metadata: clone(of.Metadata)}
	for range 1 + s.IntN(4) {
		switch s.IntN(12) {
		case 0:
			out.Stored = []string{"", "other", "label", "minimal"}[s.IntN(4)]
		case 1:
			out.Metadata = s.change("metadata", out.Metadata)
		default:
			out.Spec = s.change("spec", out.Spec)
		}
	}
	return out
}

func clone(node any) any {
	switch node := node.(type) {
	case map[string]any:
		out := make(map[string]any, len(node))
		for key, value := range node {
			out[key] = clone(value)
		}
		return out
	case []any:
		out := make([]any, len(node))
		for i := range node {
			out[i] = clone(node[i])
		}
		return out
	}
	return node
}

// change changes a value, or a part of it.
func (s *Search) change(key string, node any) any {
	switch node := node.(type) {
	case map[string]any:
		return s.changeObject(key, node)
	case []any:
		return s.changeList(key, node)
	}
	if s.IntN(4) == 0 {
		return map[string]any{key: node}
	}
	return s.atom()
}

func (s *Search) changeObject(key string, node map[string]any) any {
	if n, ok := node["$n"].(float64); ok {
		if s.IntN(2) == 0 && node["of"] != nil {
			node["of"] = s.change(key, node["of"])
		} else {
			node["$n"] = max(1, min(5e5, float64(int(n*[]float64{0.5, 0.9, 1.1, 1.5, 2, 4}[s.IntN(6)]))))
		}
		return node
	}
	names := slices.Sorted(maps.Keys(node))
	switch chance := s.IntN(10); {
	case chance < 6 && len(names) > 0:
		name := names[s.IntN(len(names))]
		node[name] = s.change(name, node[name])
	case chance == 6 && len(names) > 0:
		delete(node, names[s.IntN(len(names))])
	case chance == 7:
		keys := []string{"a%d", "a.b/%d", "a", "%d ", "hugepages-1e%d", "kubernetes.io/%d"}
		node["$"] = map[string]any{"$n": float64(1 + s.IntN(3000)), "key": keys[s.IntN(len(keys))], "of": s.atom()}
	case chance == 8 && s.IntN(3) == 0:
		return s.atom()
	default:
		if known := s.known[key]; len(known) > 0 {
			m := known[s.IntN(len(known))]
			node[m.name] = clone(m.value)
		}
	}
	return node
}

func (s *Search) changeList(key string, node []any) any {
	if len(node) == 0 {
		return []any{s.atom()}
	}
	at := s.IntN(len(node))
	item, isObject := node[at].(map[string]any)
	switch chance := s.IntN(10); {
	case chance < 4:
		node[at] = s.change(key, node[at])
	case chance < 7 && (!isObject || item["$n"] == nil):
		node[at] = map[string]any{"$n": float64(1 + s.IntN(3000)), "of": node[at]}
	case chance == 7:
		node = append(node, clone(node[at]))
	case chance == 8:
		node = append(node, s.atom())
	default:
		node = slices.Delete(node, at, at+1)
	}
	return node
}
