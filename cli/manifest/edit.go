// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Field is a field with the value that it is to have: a text that needs no quotes in YAML.
type Field struct{ Name, Value string }

// Edit replaces the bytes from From to To of a file, so that its comments and its order stay.
type Edit struct {
	From, To int
	Text     string
}

// Apply returns the text of a file with edits, none of which is within another one.
func Apply(file []byte, edits []Edit) []byte {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b Edit) int { return cmp.Compare(b.From, a.From) })
	for _, e := range edits {
		file = slices.Concat(file[:e.From], []byte(e.Text), file[e.To:])
	}
	return file
}

// lineEnd matches the end of a line, as on Windows too, and of the file.
var lineEnd = regexp.MustCompile(`\r?\n|$`)

// Set returns the edits of the file of a document that set fields beside the field with a path: in
// their place where they are, and otherwise after that one. Each of them must be a text on one
// line, without escapes, and not of an alias.
func (d *Document) Set(file []byte, path string, fields ...Field) ([]Edit, error) {
	at := strings.LastIndexByte(path, '.')
	mapping := d.at(path[:max(at, 0)])
	key, value := entry(mapping, path[at+1:])
	_, end, err := d.token(file, value)
	if err != nil {
		return nil, err
	}
	var edits []Edit
	added := Edit{From: end, To: end}
	for _, f := range fields {
		old, value := entry(mapping, f.Name)
		switch {
		case old != nil:
			from, to, err := d.token(file, value)
			if err != nil {
				return nil, fmt.Errorf("%s %w", f.Name, err)
			}
			quote := string(file[from:to])[:len(quotes[value.Style])]
			edits = append(edits, Edit{from, to, quote + f.Value + quote})
		case mapping.Style&yaml.FlowStyle != 0:
			quote := quotes[key.Style] // JSON has them.
			added.Text += ", " + quote + f.Name + quote + ": " + quote + f.Value + quote
		default:
			at := lineEnd.FindIndex(file[end:])
			added.From, added.To = end+at[0], end+at[0]
			added.Text += cmp.Or(string(file[end+at[0]:end+at[1]]), "\n") + strings.Repeat(" ", key.Column-1) + f.Name + ": " + f.Value
		}
	}
	if added.Text != "" {
		edits = append(edits, added)
	}
	return edits, nil
}

// at returns the node of a field, nil if there is none, or if it is that of an alias, which other
// fields have too.
func (d *Document) at(path string) *yaml.Node {
	node := d.root
	if node != nil && node.Kind == yaml.AliasNode {
		return nil
	}
	for _, names := range token.FindAllStringSubmatch(path, -1) {
		if _, node = entry(node, names[1]+names[2]); node != nil && node.Kind == yaml.AliasNode {
			return nil
		}
	}
	return node
}

// quotes are around the text of a scalar.
var quotes = map[yaml.Style]string{yaml.DoubleQuotedStyle: `"`, yaml.SingleQuotedStyle: `'`}

// token returns where the text of a scalar begins and ends in the file.
func (d *Document) token(file []byte, node *yaml.Node) (from, to int, err error) {
	err = errors.New("cannot be edited here: write it as one text on its line, without escapes, anchors and aliases")
	if node == nil || node.Kind != yaml.ScalarNode || node.Anchor != "" || node.Tag == "!!null" {
		return 0, 0, err
	}
	text := bytes.TrimPrefix(file, []byte("\ufeff"))
	from = len(file) - len(text)
	for range node.Line - 1 {
		from += bytes.IndexByte(file[from:], '\n') + 1
	}
	line := []rune(string(file[from : from+len(bytes.SplitN(file[from:], []byte("\n"), 2)[0])]))
	if node.Column-1 > len(line) {
		return 0, 0, err
	}
	from += len(string(line[:node.Column-1]))
	written := quotes[node.Style] + node.Value + quotes[node.Style]
	if !strings.HasPrefix(string(line[node.Column-1:]), written) {
		return 0, 0, err
	}
	return from, from + len(written), nil
}
