// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

// box reads a ModelBox called web from the YAML of its spec.
func box(t testing.TB, spec string) *modelv1.ModelBox {
	t.Helper()
	out := &modelv1.ModelBox{}
	out.Name = "web"
	ruletest.Read(t, spec, &out.Spec)
	return out
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

// unmarshal decodes as the API server does, where unknown fields are pruned.
func unmarshal(data []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}
