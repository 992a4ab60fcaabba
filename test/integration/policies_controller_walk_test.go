// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	openapi "k8s.io/kube-openapi/pkg/validation/spec"
)

// tree is an object in JSON.
type tree = map[string]any

// schemaField is a field of a kind that has no fields itself: its names in JSON, with [] for an item of a
// list and {} for a value of a map, and its schema.
type schemaField struct {
	path []string
	of   *openapi.Schema
}

// walkSchema returns all fields of a schema, whose references are resolved.
func walkSchema(s *openapi.Schema, path ...string) (out []schemaField) {
	at := func(name string) []string { return append(slices.Clone(path), name) }
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		return walkSchema(s.Items.Schema, at("[]")...)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return walkSchema(s.AdditionalProperties.Schema, at("{}")...)
	case len(s.Properties) == 0:
		return []schemaField{{path, s}}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		out = append(out, walkSchema(new(s.Properties[name]), at(name)...)...)
	}
	return out
}

// words are values of fields that are not numbers: of enumerations, of names, of quantities, and of all else.
var words = []any{
	"walk", "7", "/walk", "10.0.0.9", int64(7), "7%", "http", "Always", "OnFailure", "OnDelete", "Recreate", "LoadBalancer", "NodePort", "None", "Local",
	"UDP", "IPv6", "PreferDualStack", "RequireDualStack", "ClientIP", "IfNotPresent", "FallbackToLogsOnError", "Unconfined", "Default", "ClusterFirst", "Exists",
	"NoSchedule", "HTTPS", "Warning", "ReadOnlyMany", "Disabled", "linux", "Ignore", "Exact", "Never", "Cluster", "True", "0123456789abcdef",
}

// values returns values for a field that differ from the one it has, the most probable first.
func values(f schemaField, current any) (out []any) {
	switch {
	case f.of.Type.Contains("boolean"):
		out = []any{true, false}
	case f.of.Type.Contains("integer"):
		number, _ := current.(int64)
		out = []any{int64(math.MaxInt32), number + 1, int64(7)}
	case f.of.Type.Contains("object"):
		out = []any{tree{"spec": tree{"hostNetwork": true}}, tree{"f:spec": tree{"f:paused": tree{}}}}
	case len(f.of.Enum) > 0:
		out = slices.Clone(f.of.Enum)
	case f.of.Format == "date-time":
		out = []any{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000006Z"}
	case f.of.Format == "byte":
		out = []any{"d2Fsaw=="}
	default:
		if text, ok := current.(string); ok {
			out = append(out, text+"1", text+"/1")
		}
		out = append(out, words...)
	}
	return slices.DeleteFunc(out, func(v any) bool { return reflect.DeepEqual(v, current) })
}

// lookup returns the value of a field, of the first item of each list, and of the key "walk".
func lookup(value any, path []string) any {
	for _, step := range path {
		switch typed := value.(type) {
		case tree:
			value = typed[strings.ReplaceAll(step, "{}", "walk")]
		case []any:
			if value = nil; len(typed) > 0 {
				value = typed[0]
			}
		default:
			return nil
		}
	}
	return value
}

// with returns a value in which a field has another value, or is removed if that is nil.
func with(value any, path []string, to any) any {
	if len(path) == 0 {
		return to
	}
	if path[0] == "[]" {
		items, _ := value.([]any)
		if items = slices.Clone(items); len(items) == 0 {
			items = []any{nil}
		}
		if items[0] = with(items[0], path[1:], to); items[0] == nil {
			items = items[1:]
		}
		return items
	}
	object, _ := value.(tree)
	if object = maps.Clone(object); object == nil {
		object = tree{}
	}
	name := strings.ReplaceAll(path[0], "{}", "walk")
	if object[name] = with(object[name], path[1:], to); object[name] == nil {
		delete(object, name)
	}
	return object
}

// forgeries returns lists for metadata.managedFields that differ from one in what they say about
// other managers.
func forgeries(entries []any) (out [][]any) {
	forged := tree{"f:spec": tree{"f:template": tree{"f:spec": tree{"f:containers": tree{`k:{"name":"web"}`: tree{"f:securityContext": tree{"f:runAsNonRoot": tree{}}, "f:resources": tree{}}}}}}}
	entry := func(manager, operation string) tree {
		return tree{"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": forged, "time": "2026-01-02T03:04:05Z"}
	}
	out = append(out, []any{}, []any{tree{}}, append(slices.Clone(entries), entry("argocd", "Apply")), append(slices.Clone(entries), entry("ancient-changes", "Update")),
		append(slices.Clone(entries), entry("modelbox-eru", "Update")), append(slices.Clone(entries), entry("modelbox-eru", "Apply")))
	for i := range entries {
		for field, value := range (tree{"fieldsV1": forged, "manager": "walk", "operation": "Apply", "subresource": "walk", "apiVersion": "walk/v1", "time": nil}) {
			changed := slices.Clone(entries)
			changed[i] = with(changed[i], []string{field}, value)
			out = append(out, changed)
		}
		out = append(out, slices.Delete(slices.Clone(entries), i, i+1))
	}
	return out
}

// flat returns the values without fields below a value, by their path, without what the API server
// maintains. The path of a field in managedFields begins with its entry.
func flat(path string, value any, out map[string]any) map[string]any {
	switch typed := value.(type) {
	case tree:
		if _, itself := typed["."]; itself || len(typed) == 0 {
			out[path] = "{}"
		}
		for name, inner := range typed {
			if name != "." {
				flat(strings.TrimPrefix(path+"."+name, "."), inner, out)
			}
		}
	case []any:
		for i, item := range typed {
			if entry, ok := item.(tree); ok && path == "metadata.managedFields" {
				flat(fmt.Sprintf("%s[%v %v %v %v]", path, entry["manager"], entry["operation"], entry["subresource"], entry["apiVersion"]), entry["fieldsV1"], out)
				continue
			}
			flat(fmt.Sprintf("%s[%d]", path, i), item, out)
		}
	default:
		if !slices.Contains([]string{"metadata.resourceVersion", "metadata.generation", "metadata.uid", "metadata.creationTimestamp"}, path) {
			out[path] = typed
		}
	}
	return out
}

// changedPaths returns which fields differ between two objects, without the places in lists.
func changedPaths(before, after tree) (paths []string) {
	a, b := flat("", before, map[string]any{}), flat("", after, map[string]any{})
	for path := range a {
		if _, ok := b[path]; !ok {
			b[path] = nil
		}
	}
	for path, value := range b {
		if old, ok := a[path]; ok && reflect.DeepEqual(old, value) {
			continue
		}
		for {
			before, rest, ok := strings.Cut(path, "[")
			_, after, closed := strings.Cut(rest, "]")
			if !ok || !closed {
				break
			}
			path = before + after
		}
		if n, ok := value.(int64); ok && n == math.MaxInt32 {
			path += fmt.Sprintf("=%d", n)
		}
		paths = append(paths, path)
	}
	return paths
}
