// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// box reads a ModelBox called web from the YAML of its spec.
func box(t testing.TB, spec string) *modelv1.ModelBox {
	t.Helper()
	out := &modelv1.ModelBox{}
	out.Name = "web"
	read(t, spec, &out.Spec)
	return out
}

// read decodes YAML as the API server decodes JSON, with regard to case.
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

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// diff compares what two values look like in JSON.
func diff(t testing.TB, want, got any) string {
	t.Helper()
	if bytes.Equal(marshal(t, want), marshal(t, got)) {
		return ""
	}
	return cmp.Diff(tree(t, want), tree(t, got))
}

// tree is what v looks like in JSON.
func tree(t testing.TB, v any) any {
	t.Helper()
	var out any
	if err := json.Unmarshal(marshal(t, v), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func lines(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

// unmarshal decodes as the API server does, where unknown fields are pruned.
func unmarshal(data []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}
