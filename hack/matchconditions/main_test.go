// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	conditionsFile = "- name: a\n  expression: 'true'\n"
	before         = "---\nkind: A\nwebhooks:\n- name: one\n- matchConditions:\n  - name: old\n  name: two\n---\nkind: B\nwebhooks:\n- name: three\n"
	after          = "---\nkind: A\nwebhooks:\n- matchConditions:\n  - expression: \"true\"\n    name: a\n  name: one\n- matchConditions:\n  - expression: \"true\"\n    name: a\n  name: two\n" +
		"---\nkind: B\nwebhooks:\n- matchConditions:\n  - expression: \"true\"\n    name: a\n  name: three\n"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	conditions, manifests := filepath.Join(dir, "conditions.yaml"), filepath.Join(dir, "manifests.yaml")
	for file, text := range map[string]string{conditions: conditionsFile, manifests: before} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // The second time changes nothing.
		if err := run([]string{conditions, manifests}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(manifests)
		if err != nil || string(got) != after {
			t.Errorf("%s (%v)\nwant\n%s", got, err, after)
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"conditions": conditionsFile, "unknown": "- nam: a\n", "none": "kind: A\n", "manifests": before}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{}, {"conditions"}, {"absent", "manifests"}, {"unknown", "manifests"}, {"conditions", "none"}, {"conditions", "absent"}} {
		for i := range args {
			args[i] = filepath.Join(dir, args[i])
		}
		if run(args) == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
