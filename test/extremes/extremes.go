// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package extremes generates objects from the schemas of CRDs, for tests: for each type
// the smallest and the largest value that the schema allows, and, on request, values that
// it does not allow.
package extremes

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Source generates values. The same seed generates the same values.
type Source struct{ random *rand.Rand }

// New returns a Source.
func New(seed uint64) *Source { return &Source{rand.New(rand.NewPCG(seed, seed))} }

// Value returns a value that a schema allows. It does not consider the CEL rules.
func (s *Source) Value(schema *apiextensionsv1.JSONSchemaProps) any {
	switch {
	case schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields:
		return one(s, podTemplates())
	case len(schema.Enum) > 0:
		return strings.Trim(string(one(s, schema.Enum).Raw), `"`)
	case schema.XIntOrString && s.random.IntN(2) == 0, schema.Type == "integer":
		return s.integer(schema)
	case schema.XIntOrString, schema.Type == "string":
		return s.text(schema)
	case schema.Type == "boolean":
		return s.random.IntN(2) == 0
	case schema.Type == "array":
		return s.list(schema)
	case schema.AdditionalProperties != nil:
		return s.dictionary(schema)
	}
	return s.object(schema)
}

// one returns one of several values.
func one[T any](s *Source, values []T) T { return values[s.random.IntN(len(values))] }

func (s *Source) object(schema *apiextensionsv1.JSONSchemaProps) map[string]any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if slices.Contains(schema.Required, name) || s.random.IntN(2) == 0 {
			property := schema.Properties[name]
			object[name] = s.Value(&property)
		}
	}
	return object
}

// list returns a list with a few items, or sometimes with the maximum number of items if
// that is small.
func (s *Source) list(schema *apiextensionsv1.JSONSchemaProps) []any {
	n := int64(one(s, []int{0, 1, 2, 3}))
	if schema.MaxItems != nil && *schema.MaxItems <= 100 && s.random.IntN(10) == 0 {
		n = *schema.MaxItems
	}
	items := make([]any, n)
	for i := range items {
		items[i] = s.Value(schema.Items.Schema)
	}
	return items
}

func (s *Source) dictionary(schema *apiextensionsv1.JSONSchemaProps) map[string]any {
	names := []string{
		"cpu", "memory", "example.com/gpu", "hugepages-2Mi", "hugepages-1e-999999999", "hugepages-1e999999999", "", "A B", strings.Repeat("x", 300),
	}
	values := map[string]any{}
	for range s.random.IntN(4) {
		values[one(s, names)] = s.Value(schema.AdditionalProperties.Schema)
	}
	return values
}

func (s *Source) integer(schema *apiextensionsv1.JSONSchemaProps) any {
	low, high := int64(0), int64(1)<<53-1
	if schema.Minimum != nil {
		low = int64(*schema.Minimum)
	}
	if schema.Maximum != nil {
		high = int64(*schema.Maximum)
	}
	return one(s, []int64{low, high, low + 1, low + s.random.Int64N(high-low+1)})
}

// texts are candidates for a string. Those that its schema does not allow are not used.
var texts = []string{
	"", "a", "web", "Web", "nginx:1", "1", "x y", "\u0000", "\U0001F600", "a-1", "tcp-80", "0 0 * * *", "0 0 30 2 *", "Etc/UTC", "25%", "100%", "0%",
	"0", "100m", ".000000001", "999999999999999999E", "999999999999999999.999999999Ei", "1e99", "999999999999999999e99", "1e-99", "1Ki", "1n",
	"0000-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-02-30T00:00:00Z",
	"2026-12-24", "0000-02-31", "90m", "99999h99999m99999s", "http://a",
}

func (s *Source) text(schema *apiextensionsv1.JSONSchemaProps) string {
	most := int64(100)
	if schema.MaxLength != nil {
		most = *schema.MaxLength
	}
	if s.random.IntN(200) > 0 {
		most = min(most, 1000) // Few have the maximum length, because otherwise no object could be stored.
	}
	candidates := append([]string{strings.Repeat("a", int(most)), strings.Repeat("9", int(most))}, texts...)
	pattern := regexp.MustCompile(schema.Pattern)
	candidates = slices.DeleteFunc(candidates, func(text string) bool {
		n := int64(utf8.RuneCountInString(text))
		return n > most || schema.MinLength != nil && n < *schema.MinLength || !pattern.MatchString(text)
	})
	if len(candidates) == 0 {
		panic(fmt.Sprintf("no text matches the pattern %s and has at most %d characters", schema.Pattern, most))
	}
	return one(s, candidates)
}

// Nasty returns values that few or no schemas of this project allow. Go cannot decode
// them into some types, or only at a high cost.
func Nasty() []any {
	return []any{
		"1e.5", "1e1.5", "1e99999999999999999999", "1e999999999", "1e-999999999", "12345678901234567890e999999999", "-1e999999999",
		strings.Repeat("9", 100_000), "0." + strings.Repeat("0", 100_000) + "1", strings.Repeat("\U0001F600", 50_000),
		int64(3000000000), int64(-1), int64(9223372036854775807), int64(-9223372036854775808), 1e300, -1e300, 1.5,
		"9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00", "10000-01-01T00:00:00Z", "2026-01-02T03:04:05.999999999+23:59",
		"", "\u0000", nil, true, []any{}, map[string]any{}, []any{nil}, map[string]any{"": nil}, []any{[]any{}}, nested(200),
	}
}

// Spoil replaces some values of an object, at any depth, with copies of values from a list: an
// object that is spoilt later must not change this one.
func (s *Source) Spoil(object map[string]any, by []any) {
	keys := slices.Sorted(maps.Keys(object))
	if len(keys) == 0 {
		return
	}
	for range 1 + s.random.IntN(2) {
		key := one(s, keys)
		inner, ok := object[key].(map[string]any)
		if list, isList := object[key].([]any); isList && len(list) > 0 {
			inner, ok = list[0].(map[string]any)
		}
		if ok && len(inner) > 0 && s.random.IntN(5) > 0 {
			s.Spoil(inner, by)
			continue
		}
		object[key] = runtime.DeepCopyJSONValue(one(s, by))
	}
}

// podTemplates returns values for a field without a schema.
func podTemplates() []any {
	container := func(fields map[string]any) any {
		return map[string]any{"spec": map[string]any{"containers": []any{fields}}}
	}
	templates := []any{
		map[string]any{}, map[string]any{"spec": nil}, map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}},
		map[string]any{"blob": strings.Repeat("x", 200_000)}, map[string]any{"deep": nested(500)},
		map[string]any{"metadata": map[string]any{"creationTimestamp": "9999-12-31T23:59:59-01:00"}},
		map[string]any{"spec": map[string]any{"terminationGracePeriodSeconds": int64(9223372036854775807)}},
		container(map[string]any{"name": "side", "image": "side:1"}),
		container(map[string]any{"name": "side", "image": "side:1", "readinessProbe": map[string]any{"tcpSocket": map[string]any{"port": int64(3000000000)}}}),
	}
	for _, value := range Nasty() {
		templates = append(templates,
			container(map[string]any{"name": "side", "image": "side:1", "resources": map[string]any{"limits": map[string]any{"cpu": value}}}),
			container(map[string]any{"name": value, "image": "side:1"}),
			map[string]any{"spec": map[string]any{"volumes": []any{map[string]any{"name": "v", "emptyDir": map[string]any{"sizeLimit": value}}}}})
	}
	return templates
}

func nested(depth int) any {
	var value any = "x"
	for range depth {
		value = map[string]any{"a": value}
	}
	return value
}
