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

// validate returns what the schema of its kind finds wrong with an object, and whether there is one.
func validate(t *testing.T, all map[string]*jsonschema.Schema, object *unstructured.Unstructured) (error, bool) {
	t.Helper()
	gvk := object.GroupVersionKind()
	schema, ok := all[gvk.Group+"_"+strings.ToLower(gvk.Kind)+"_"+gvk.Version]
	if !ok {
		return nil, false
	}
	text, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(document), true
}

// The schemas accept each sample, and none with an unknown field or a value of a wrong type anywhere in its spec.
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
				wrong, ok := validate(t, all, object)
				if !ok {
					continue
				}
				checked++
				if wrong != nil {
					t.Errorf("%s: %v", file, wrong)
				}
				spec := object.Object["spec"].(map[string]any)
				for name, value := range spec {
					if wrong := "of a wrong type"; name != "podTemplate" {
						spec[name] = map[string]any{"unknown": wrong}
						if err, _ := validate(t, all, object); err == nil {
							t.Errorf("%s: a value %s is accepted in spec.%s", file, wrong, name)
						}
					}
					spec[name] = value
				}
				spec["unknown"] = ""
				if err, _ := validate(t, all, object); err == nil {
					t.Errorf("%s: an unknown field is accepted", file)
				}
			}
		}
	}
	if checked < 15 {
		t.Errorf("only %d objects were checked", checked)
	}
}
