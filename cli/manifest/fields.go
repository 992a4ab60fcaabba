// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fields finds the lines of an object's fields.
type fields struct {
	root   *yaml.Node
	before int
}

// LineOf returns the line of a field with a path as in an error of the API server, such as
// spec.ports[0].name or metadata.labels[a.b/c]. Of a field that the object does not have it
// is the line of the innermost one around it.
func (d *Document) LineOf(path string) int {
	if d.fields.root == nil {
		return d.Line
	}
	node, line := d.fields.root, d.fields.root.Line
	for _, name := range tokens(path) {
		key, value := entry(node, name)
		if value == nil {
			break
		}
		node, line = value, key.Line
	}
	return d.fields.before + line
}

// Shifted returns a line of the document's text as one of the file.
func (d *Document) Shifted(line int) int { return d.fields.before + line }

// entry returns the key and the value of a member of a mapping, or an item of a sequence as
// both of them, nil if there is none. Of a key that is there twice it is the last.
func entry(node *yaml.Node, name string) (key, value *yaml.Node) {
	if node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch {
	case node == nil:
	case node.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				key, value = node.Content[i], node.Content[i+1]
			}
		}
	case node.Kind == yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
	}
	return key, value
}

// tokens splits a path into names, indexes and keys.
func tokens(path string) []string {
	var out []string
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			key, after, _ := strings.Cut(rest, "]")
			out, path = append(out, key), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(out, path)
		}
		out = append(out, path[:end])
		path = strings.TrimPrefix(path[end:], ".")
	}
	return out
}

// Text returns the text of a field, "" if it is not a string or does not exist.
func (d *Document) Text(names ...string) string {
	node := d.fields.root
	for _, name := range names {
		node = member(node, name)
	}
	return text(node)
}
