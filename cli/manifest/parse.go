// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Parse returns the objects in the text of a file: documents in YAML, of which JSON is a part, that are separated by ---. A
// list is returned as its items.
func Parse(file string, data []byte) []Document {
	var out []Document
	for _, part := range split(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		out = append(out, part.documents(file)...)
	}
	return out
}

// part is a part of a file that is one document.
type part struct {
	data []byte
	// before is the number of lines before it.
	before int
}

// split splits at the lines that begin with ---, as kubectl does.
func split(data []byte) []part {
	var parts []part
	current, line := part{}, 0
	for text := range strings.Lines(string(data)) {
		if isSeparator(text) {
			parts = append(parts, current)
			current = part{before: line}
			text = strings.Replace(text, "---", "   ", 1) // What follows belongs to the document.
		}
		current.data = append(current.data, text...)
		line++
	}
	return append(parts, current)
}

func isSeparator(line string) bool {
	rest, ok := strings.CutPrefix(line, "---")
	return ok && (strings.TrimSpace(rest) == "" || rest[0] == ' ' || rest[0] == '\t')
}

// documents returns the object of a part, or the items of a list.
func (p part) documents(file string) []Document {
	var root yaml.Node
	if err := yaml.Unmarshal(p.data, &root); err != nil {
		return []Document{p.broken(file, err)}
	}
	if root.Kind != yaml.DocumentNode || len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
		return nil
	}
	doc := p.document(file, root.Content[0])
	if items := itemsOf(doc.GVK, root.Content[0]); items != nil {
		return p.items(file, items)
	}
	doc.Data = p.data
	return []Document{doc}
}

var lineIn = regexp.MustCompile(`line (\d+)`)

// broken returns the document of a syntax error, with its line in the file.
func (p part) broken(file string, err error) Document {
	doc := Document{File: file, Line: p.before + 1, Err: errors.New(strings.TrimPrefix(err.Error(), "yaml: "))}
	if found := lineIn.FindStringSubmatch(err.Error()); found != nil {
		line, _ := strconv.Atoi(found[1])
		doc.Line = p.before + line
		doc.Err = errors.New(strings.Replace(doc.Err.Error(), found[0]+": ", "", 1))
	}
	doc.Err = fmt.Errorf("cannot be parsed as YAML or JSON: %w", doc.Err)
	return doc
}

func (p part) document(file string, node *yaml.Node) Document {
	metadata := member(node, "metadata")
	return Document{
		File: file, Line: p.before + node.Line,
		GVK:       schema.FromAPIVersionAndKind(text(member(node, "apiVersion")), text(member(node, "kind"))),
		Namespace: text(member(metadata, "namespace")), Name: text(member(metadata, "name")), UID: text(member(metadata, "uid")),
		fields: fields{node, p.before},
	}
}

// itemsOf returns the items of a List, or of a list of a kind, nil for another object.
func itemsOf(gvk schema.GroupVersionKind, node *yaml.Node) *yaml.Node {
	if items := member(node, "items"); strings.HasSuffix(gvk.Kind, "List") && items != nil && items.Kind == yaml.SequenceNode {
		return items
	}
	return nil
}

func (p part) items(file string, items *yaml.Node) []Document {
	var out []Document
	for _, item := range items.Content {
		doc := p.document(file, item)
		data, err := yaml.Marshal(item)
		if err != nil {
			doc.Err = err
		}
		doc.Data = data
		if nested := itemsOf(doc.GVK, item); nested != nil {
			out = append(out, p.items(file, nested)...)
			continue
		}
		out = append(out, doc)
	}
	return out
}

// fields finds the lines of an object's fields.
type fields struct {
	root   *yaml.Node
	before int
}

// token matches a name in a path, or an index or a key in brackets.
var token = regexp.MustCompile(`\[([^\]]*)\]|([^.\[]+)`)

// LineOf returns the line of a field with a path as in an error of the API server, such as
// spec.ports[0].name or metadata.labels[a.b/c]. Of a field that the object does not have it
// is the line of the innermost one around it.
func (d *Document) LineOf(path string) int {
	if d.fields.root == nil {
		return d.Line
	}
	node, line := d.fields.root, d.fields.root.Line
	for _, names := range token.FindAllStringSubmatch(path, -1) {
		key, value := entry(node, names[1]+names[2])
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

// member returns the value of a key of a mapping, nil if there is none.
func member(node *yaml.Node, name string) *yaml.Node {
	_, value := entry(node, name)
	return value
}

func text(node *yaml.Node) string {
	if node == nil || node.Kind != yaml.ScalarNode || node.Tag != "!!str" {
		return ""
	}
	return node.Value
}
