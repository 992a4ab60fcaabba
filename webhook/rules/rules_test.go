// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

var f = field.NewPath("f")

// row is something judged, in YAML, and the errors that it gets, one a line.
type row struct{ value, want string }

// judge checks rows of one rule, all of which are decoded into a T of their own.
func judge[T any](t *testing.T, rows map[string]row, rule func(*T) field.ErrorList) {
	t.Helper()
	t.Parallel()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value := new(T)
			read(t, row.value, value)
			if diff := cmp.Diff(strings.TrimSpace(row.want), lines(rule(value))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.value, diff)
			}
		})
	}
}

func lines(errs field.ErrorList) string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return strings.Join(out, "\n")
}

func read(t testing.TB, text string, into any) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("reading %q: %v", text, err)
	}
	if unknown, err := kjson.UnmarshalStrict(data, into); err != nil || len(unknown) > 0 {
		t.Fatalf("reading %q: %v %v", text, err, unknown)
	}
}

// raw is a pod template as an object has it.
func raw(t testing.TB, text string) *runtime.RawExtension {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("reading %q: %v", text, err)
	}
	return &runtime.RawExtension{Raw: data}
}
