// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command schemas writes a JSON Schema of each version of the CRDs in config/crd/bases into the directory that is its
// argument, for editors and for kubeconform: GROUP_KIND_VERSION.json. It has no CEL rules, which modelbox lint evaluates.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// definition is what of a CRD is used.
type definition struct {
	Spec struct {
		Group    string
		Names    struct{ Kind string }
		Versions []struct {
			Name   string
			Schema struct{ OpenAPIV3Schema map[string]any }
		}
	}
}

func main() {
	files, err := filepath.Glob("config/crd/bases/*.yaml")
	if err == nil && (len(files) == 0 || len(os.Args) != 2) {
		err = fmt.Errorf("schemas DIRECTORY, in the root of the repository: %d CRDs", len(files))
	}
	for _, file := range files {
		if err == nil {
			err = write(file, os.Args[1])
		}
	}
	if err != nil {
		log.Fatalf("schemas: %v", err)
	}
}

// write writes the schemas of the CRD in a file into a directory.
func write(file, directory string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd definition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, version := range crd.Spec.Versions {
		schema := version.Schema.OpenAPIV3Schema
		closed(schema)
		schema["$schema"] = "http://json-schema.org/draft-07/schema#"
		schema["required"] = []string{"apiVersion", "kind"}
		properties := schema["properties"].(map[string]any)
		properties["apiVersion"] = map[string]any{"const": crd.Spec.Group + "/" + version.Name}
		properties["kind"] = map[string]any{"const": crd.Spec.Names.Kind}
		encoded, err := json.MarshalIndent(schema, "", " ")
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s_%s_%s.json", crd.Spec.Group, strings.ToLower(crd.Spec.Names.Kind), version.Name)
		if err := os.WriteFile(filepath.Join(directory, name), append(encoded, '\n'), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// closed makes a schema of a CRD one of JSON: objects with properties have no others, unless unknown fields are
// preserved, and there are no keywords of Kubernetes.
func closed(schema map[string]any) {
	if _, ok := schema["properties"]; ok && schema["x-kubernetes-preserve-unknown-fields"] != true {
		schema["additionalProperties"] = false
	}
	maps.DeleteFunc(schema, func(keyword string, _ any) bool { return strings.HasPrefix(keyword, "x-kubernetes-") })
	properties, _ := schema["properties"].(map[string]any)
	for _, property := range properties {
		closed(property.(map[string]any))
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if inner, ok := schema[keyword].(map[string]any); ok {
			closed(inner)
		}
	}
}
