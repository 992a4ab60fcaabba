// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// An owner is the manifest of an object of this project.
type owner struct {
	// name is the kind and the manifest's name: "modelbox/everything".
	name     string
	manifest tree
}

// readOwners reads the manifests of the golden tests, and those of the tests of edits, which
// have more fields.
func readOwners() ([]owner, error) {
	var owners []owner
	for _, folder := range []string{"modelbox/testdata", "app/testdata", "genericdaemon/testdata", "testdata/edits"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, ".golden.yaml") {
				continue
			}
			found, err := readOwner(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			owners = append(owners, found)
		}
	}
	return owners, nil
}

func readOwner(file string) (owner, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return owner{}, err
	}
	var manifest tree
	if err := yaml.Unmarshal(data, &manifest, useInt64); err != nil {
		return owner{}, err
	}
	object := unstructured.Unstructured{Object: integer(manifest).(tree)}
	name := strings.ToLower(object.GetKind()) + "/" + strings.TrimSuffix(filepath.Base(file), ".yaml")
	return owner{name: name, manifest: object.Object}, nil
}
