// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// schemas returns the JSON Schemas of a release, as kubeconform selects them: by apiVersion and kind.
func schemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	dir := t.TempDir()
	run := exec.CommandContext(t.Context(), "go", "run", "./hack/schemas", dir)
	run.Dir = "../../.."
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 5 {
		t.Fatalf("the schemas are %v (%v)", files, err)
	}
	out := map[string]*jsonschema.Schema{}
	for _, file := range files {
		schema, err := jsonschema.NewCompiler().Compile(file)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".json")] = schema
	}
	return out
}

// validate returns what a schema finds wrong with an object.
func validate(t *testing.T, schema *jsonschema.Schema, object *unstructured.Unstructured) error {
	t.Helper()
	text, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(document)
}

// The schemas accept each sample, and none with an unknown field or a value of a wrong type in its spec.
func TestSchemasOfARelease(t *testing.T) {
	all, checked := schemas(t), 0
	for _, pattern := range []string{"../../../config/samples/*.yaml", "../../../config/samples/more/*.yaml", "../../../kinds/*/testdata/everything.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files (%v)", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range decode(t, string(text)) {
				gvk := object.GroupVersionKind()
				if schema, ok := all[gvk.Group+"_"+strings.ToLower(gvk.Kind)+"_"+gvk.Version]; ok {
					checked++
					t.Run(filepath.Base(file), func(t *testing.T) { checkSchema(t, schema, object) })
				}
			}
		}
	}
	if checked < 15 {
		t.Errorf("only %d objects were checked", checked)
	}
}

// checkSchema checks that a schema accepts an object, and refuses it with something wrong in its spec.
func checkSchema(t *testing.T, schema *jsonschema.Schema, object *unstructured.Unstructured) {
	t.Helper()
	if err := validate(t, schema, object); err != nil {
		t.Error(err)
	}
	spec := object.Object["spec"].(map[string]any)
	for name, value := range spec {
		if name == "podTemplate" {
			continue // Kubernetes' own, which is not in the schema.
		}
		spec[name] = map[string]any{"unknown": "of a wrong type"}
		if validate(t, schema, object) == nil {
			t.Errorf("any value is accepted in spec.%s", name)
		}
		spec[name] = value
	}
	spec["unknown"] = ""
	if validate(t, schema, object) == nil {
		t.Error("an unknown field is accepted")
	}
}
