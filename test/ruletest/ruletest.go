// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ruletest tests validation rules by tables: a value in YAML, and the errors that
// a rule returns for it.
package ruletest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Row is a value in YAML, and the errors that it gets, one a line.
type Row [2]string

// Run runs a rule on rows, each of which is decoded into a T of its own.
func Run[T any](t *testing.T, rows map[string]Row, rule func(*T) field.ErrorList) {
	t.Helper()
	t.Parallel()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, want := row[0], strings.TrimSpace(row[1])
			value := new(T)
			Read(t, text, value)
			if diff := cmp.Diff(want, Lines(rule(value))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", text, diff)
			}
		})
	}
}

// Lines returns the text of the errors, one a line.
func Lines(errs field.ErrorList) string {
	lines := make([]string, 0, len(errs))
	for _, err := range errs {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

// Read decodes YAML as the API server decodes JSON: field names are case-sensitive. An
// unknown field fails the test.
func Read(t testing.TB, text string, into any) {
	t.Helper()
	if unknown, err := kjson.UnmarshalStrict(JSON(t, text), into); err != nil || len(unknown) > 0 {
		t.Fatalf("reading %q: %v %v", text, err, unknown)
	}
}

// JSON converts YAML to JSON.
func JSON(t testing.TB, text string) []byte {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("reading %q: %v", text, err)
	}
	return data
}
