// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command crdbounds sets a bound for every list, map, string and number of the CRDs in
// the files that are its arguments. Markers do that for the types of this project, but
// not for the types of Kubernetes that they contain, whose schemas allow values that Go
// cannot decode, such as the quantity "1e.5" and the port 3000000000.
//
// It fails if it has no bound for a node, so that a new field of a vendored type is
// noticed when the CRDs are generated.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	for _, file := range os.Args[1:] {
		if err := rewrite(file); err != nil {
			fmt.Fprintf(os.Stderr, "crdbounds: %s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func rewrite(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	crd := map[string]any{}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return err
	}
	if err := boundCRD(crd); err != nil {
		return err
	}
	if data, err = yaml.Marshal(crd); err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), data...), 0o644)
}

// boundCRD bounds the schemas of all versions of a CRD.
func boundCRD(crd map[string]any) error {
	versions := list(object(crd, "spec"), "versions")
	if len(versions) == 0 {
		return fmt.Errorf("it has no spec.versions: is it a CRD?")
	}
	for _, version := range versions {
		root := object(version.(map[string]any), "schema", "openAPIV3Schema")
		for name, property := range object(root, "properties") {
			if name != "metadata" { // The API server validates it.
				if err := bound("."+name, property.(map[string]any)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// bound bounds a node of a schema, at a path such as .spec.envs[].name, and all nodes
// below it. It keeps existing bounds.
func bound(path string, schema map[string]any) error {
	if schema["x-kubernetes-preserve-unknown-fields"] == true {
		return nil // The podTemplate: admission bounds its bytes.
	}
	if err := boundNode(path, schema); err != nil {
		return err
	}
	for name, property := range object(schema, "properties") {
		if err := bound(path+"."+name, property.(map[string]any)); err != nil {
			return err
		}
	}
	if items := object(schema, "items"); items != nil {
		if err := bound(path+"[]", items); err != nil {
			return err
		}
	}
	if values := object(schema, "additionalProperties"); values != nil {
		return bound(path+"{}", values)
	}
	return nil
}

// object returns the object at a path of keys, or nil if there is none.
func object(in map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		in, _ = in[key].(map[string]any)
	}
	return in
}

func list(in map[string]any, key string) []any {
	items, _ := in[key].([]any)
	return items
}
