// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads Kubernetes objects from files, folders and the standard input, and
// knows the line of each of their fields.
package manifest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
)

// Document is an object in a file.
type Document struct {
	// File is the path as it was given, or of a file below a folder that was.
	File string
	// Line is the first line of the object, counted from 1.
	Line int
	// Object is what the document has, which may be nothing.
	Object *unstructured.Unstructured
	// Duplicates are the errors of keys that are set twice, and Err is that of a document that
	// cannot be parsed; Line is its line.
	Duplicates []error
	Err        error

	root *yaml.Node
}

// Read returns the objects of the given files, in their order; - is the standard input. A folder
// stands for its files with an extension of JSON or YAML, with those of the folders below it if
// recursive is set. A document that cannot be parsed is returned with an error; the error that Read
// returns is that of a file that cannot be read.
func Read(paths []string, recursive bool, stdin io.Reader) ([]Document, error) {
	var out []Document
	for _, path := range paths {
		files, err := []string{path}, error(nil)
		if path != "-" {
			files, err = expand(path, recursive)
		}
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			var data []byte
			if file == "-" {
				file = "<stdin>"
				data, err = io.ReadAll(stdin)
			} else {
				data, err = os.ReadFile(file) //nolint:gosec // The user names the file.
			}
			if err != nil {
				return nil, err
			}
			out = append(out, Parse(filepath.ToSlash(file), data)...)
		}
	}
	return out, nil
}

// expand returns the files that a path stands for, as kubectl does.
func expand(path string, recursive bool) (out []string, err error) {
	if strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://") {
		return nil, fmt.Errorf("%s is a URL, and this command uses no network: download the file, or pipe it to -f -", path)
	}
	visitors, err := resource.ExpandPathsToFileVisitors(nil, path, recursive, resource.FileExtensions, nil)
	for _, file := range visitors {
		out = append(out, file.(*resource.FileVisitor).Path)
	}
	if err == nil && len(out) == 0 {
		err = errors.New(path + " has no file with one of the extensions " + strings.Join(resource.FileExtensions, ", ") + "; use -R to search the folders below it")
	}
	return out, err
}

// token matches a name in a path, or an index or a key in brackets.
var token = regexp.MustCompile(`\[([^\]]*)\]|([^.\[]+)`)

// LineOf returns the line of a field with a path as in an error of the API server, such as
// spec.ports[0].name or metadata.labels[a.b/c]. Of a field that the object does not have it
// is the line of the innermost one around it.
func (d *Document) LineOf(path string) int {
	node, line := d.root, d.Line
	for _, names := range token.FindAllStringSubmatch(path, -1) {
		key, value := entry(node, names[1]+names[2])
		if value == nil {
			break
		}
		node, line = value, key.Line
	}
	return line
}

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
