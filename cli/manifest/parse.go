// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
	kyaml "sigs.k8s.io/yaml"
)

// separator matches the lines at which a file is split, as kubectl does.
var separator = regexp.MustCompile(`^---(\s|$)`)

// Parse returns the objects in the text of a file, as kubectl reads it: documents in YAML that are
// separated by ---, and values in JSON, which may follow each other. A list is returned as its
// items. Of what cannot be read, the document has an error.
func Parse(file string, data []byte) []Document {
	var out []Document
	var part []byte
	line, first := 0, 0
	for text := range strings.Lines(string(bytes.TrimPrefix(data, []byte("\ufeff")))) {
		if separator.MatchString(text) {
			out = append(out, documents(file, part, first)...)
			part, first = nil, line
			text = strings.Replace(text, "---", "   ", 1) // What follows belongs to the document.
		}
		part = append(part, text...)
		line++
	}
	return append(out, documents(file, part, first)...)
}

// documents returns the objects of a part of a file, before which the file has some lines.
func documents(file string, part []byte, before int) (out []Document) {
	values := jsonValues(part)
	if len(values) == 0 {
		return inYAML(file, part, before)
	}
	for _, value := range values {
		// In YAML, no tab is before a key; in JSON, none is within a text.
		root, _ := node(bytes.ReplaceAll(value, []byte("\t"), []byte(" ")), before) // What it cannot read, such as an escaped emoji, has no lines.
		doc := Document{File: file, Line: before + 1, root: root}
		if root != nil {
			doc.Line = root.Line
		}
		out = append(out, decode(doc, value)...)
		before += bytes.Count(value, []byte("\n"))
	}
	return out
}

// jsonValues returns the values of a text in JSON, each with the spaces before it; none if the text
// is another one.
func jsonValues(text []byte) (out [][]byte) {
	for decoder, from := json.NewDecoder(bytes.NewReader(text)), int64(0); ; from = decoder.InputOffset() {
		var value json.RawMessage
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			return nil
		}
		out = append(out, text[from:decoder.InputOffset()])
	}
}

func inYAML(file string, part []byte, before int) []Document {
	root, err := node(part, before)
	if err == nil && root == nil {
		return nil
	}
	var text []byte
	if err == nil {
		text, err = kyaml.YAMLToJSON(part)
	}
	if err != nil {
		return []Document{broken(file, err, before)}
	}
	return decode(Document{File: file, Line: root.Line, root: root}, text)
}

// node returns the node of the one document in a text, with its lines in the file; nil if there is
// none.
func node(text []byte, before int) (*yaml.Node, error) {
	decoder, root := yaml.NewDecoder(bytes.NewReader(text)), yaml.Node{}
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w; a second document needs a line --- before it", cmp.Or(err, errors.New("more follows")))
	}
	move(&root, before)
	return root.Content[0], nil
}

// move adds some lines before a node.
func move(node *yaml.Node, lines int) {
	node.Line += lines
	for _, child := range node.Content {
		move(child, lines)
	}
}

var lineIn = regexp.MustCompile(`line (\d+): `)

// broken returns the document of a syntax error, with its line in the file.
func broken(file string, err error, before int) Document {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	doc := Document{File: file, Line: before + 1, Object: &unstructured.Unstructured{}}
	if found := lineIn.FindStringSubmatch(text); found != nil {
		line, _ := strconv.Atoi(found[1])
		doc.Line = before + line
		text = strings.Replace(text, found[0], "", 1)
	}
	doc.Err = fmt.Errorf("cannot be parsed as YAML or JSON: %s", text)
	return doc
}

// decode returns the objects of a document whose text in JSON is given. Null is none.
func decode(doc Document, text []byte) []Document {
	var value any
	doc.Err = kjson.UnmarshalCaseSensitivePreserveInts(text, &value)
	if value == nil && doc.Err == nil {
		return nil
	}
	return doc.items(value)
}

// items returns the object of a value, or the items of a List, and of a list of a kind.
func (d Document) items(value any) (out []Document) {
	object, _ := value.(map[string]any)
	d.Object = &unstructured.Unstructured{Object: object}
	items, isList := object["items"].([]any)
	if !isList || !strings.HasSuffix(d.Object.GetKind(), "List") {
		d.Duplicates = duplicates(d.root)
		if d.Err == nil && d.Object.GetKind() != "" {
			d.nameless()
		}
		return []Document{d}
	}
	_, node := entry(d.root, "items")
	for i, item := range items {
		of := Document{File: d.File, Line: d.Line}
		if _, of.root = entry(node, strconv.Itoa(i)); of.root != nil {
			of.Line = of.root.Line
		}
		out = append(out, of.items(item)...)
	}
	return out
}

// duplicates returns the errors of keys that are set twice.
func duplicates(node *yaml.Node) (out []error) {
	if node == nil {
		return nil
	}
	known := map[string]bool{}
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			if known[child.Value] {
				out = append(out, fmt.Errorf("line %d: key %q already set in map", child.Line, child.Value))
			}
			known[child.Value] = true
		}
		out = append(out, duplicates(child)...)
	}
	return out
}

// nameless sets the error of a name that is no text: YAML reads n as false, and 5 as a number.
func (d *Document) nameless() {
	metadata, _ := d.Object.Object["metadata"].(map[string]any)
	for _, name := range []string{"name", "generateName", "namespace"} {
		if _, isText := metadata[name].(string); isText || metadata[name] == nil {
			continue
		}
		path := "metadata." + name
		d.Err = fmt.Errorf("%s: must be a text, and %v is none%s", path, metadata[name], d.Quotes(path))
		d.Line = d.LineOf(path)
	}
}

// Quotes returns what to do about the type of a field that has to be a text, "" if that is not
// quotes.
func (d *Document) Quotes(path string) string {
	value := d.at(path)
	if value == nil || value.Kind != yaml.ScalarNode || quotes[value.Style] != "" {
		return ""
	}
	return fmt.Sprintf("; write it in quotes: %q", value.Value)
}
