// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package promql

import (
	"bytes"
	"io/fs"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/modelbox-operator/modelbox-operator/config/monitoring"
)

// schemas are Grafana's own types (testdata/grafana/README.md). They refuse fields that they do not
// have.
var schemas = os.DirFS("testdata/grafana")

// validate compares a value with a schema.
func validate(t *testing.T, schema string, value any) {
	t.Helper()
	text, err := fs.ReadFile(schemas, schema)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(schema, decoded); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile(schema)
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(value); err != nil {
		t.Error(err)
	}
}

// Grafana ignores a field that it does not know, so that a wrong name has no effect and no error.
func TestDashboardIsValid(t *testing.T) {
	dashboard, err := jsonschema.UnmarshalJSON(bytes.NewReader(monitoring.Dashboard))
	if err != nil {
		t.Fatal(err)
	}
	validate(t, "dashboard.schema.json", dashboard)
	for _, panel := range dashboard.(map[string]any)["panels"].([]any) {
		panel := panel.(map[string]any)
		if panel["type"] == "row" {
			continue
		}
		t.Run(panel["title"].(string), func(t *testing.T) {
			validate(t, panel["type"].(string)+".options.schema.json", panel["options"])
			custom, ok := panel["fieldConfig"].(map[string]any)["defaults"].(map[string]any)["custom"]
			if ok {
				validate(t, panel["type"].(string)+".custom.schema.json", custom)
			}
		})
	}
}
