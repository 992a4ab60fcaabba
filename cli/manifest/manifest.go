// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads Kubernetes objects from files, folders and the standard input, and
// knows the line of each of their fields.
package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stdin is the path of the standard input, and StdinName how it is called in messages.
const (
	Stdin     = "-"
	StdinName = "<stdin>"
)

// Document is an object in a file.
type Document struct {
	// File is the path as it was given, or of a file below a folder that was.
	File string
	// Line is the first line of the object, counted from 1.
	Line int
	// Data is the object in YAML, or in JSON.
	Data []byte
	// GVK, Namespace, Name and UID are what the object has, which may be nothing.
	GVK                  schema.GroupVersionKind
	Namespace, Name, UID string
	// Err is the error of a document that cannot be parsed; Line is its line.
	Err error

	fields fields
}

// extensions are those that are read in folders, as by kubectl.
var extensions = []string{".json", ".yaml", ".yml"}

// Read returns the objects of the given files, in their order. A folder stands for its files
// with an extension of JSON or YAML, with those of the folders below it if recursive is set.
// A document that cannot be parsed is returned with an error; the error that Read returns is
// that of a file that cannot be read.
func Read(paths []string, recursive bool, stdin io.Reader) ([]Document, error) {
	var out []Document
	for _, path := range paths {
		files, err := expand(path, recursive)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			var data []byte
			if file == Stdin {
				file = StdinName
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

// expand returns the files that a path stands for.
func expand(path string, recursive bool) ([]string, error) {
	if path == Stdin {
		return []string{path}, nil
	}
	if strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://") {
		return nil, fmt.Errorf("%s is a URL, and this command uses no network: download the file, or pipe it to -f -", path)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return filesIn(path, recursive)
}

// filesIn returns a file itself, or the manifests in a folder.
func filesIn(path string, recursive bool) ([]string, error) {
	var out []string
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != path && !recursive:
			return fs.SkipDir
		case !entry.IsDir() && (file == path || slices.Contains(extensions, filepath.Ext(file))):
			out = append(out, file)
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		err = errors.New(path + " has no file with one of the extensions " + strings.Join(extensions, ", ") + "; use -R to search the folders below it")
	}
	return out, err
}
