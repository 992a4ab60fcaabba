// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
