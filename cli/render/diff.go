// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Diff returns the unified diff of two objects as YAML, "" if they are equal. Either may be
// nil. Fields that change with every write are left out.
func Diff(name string, before, after client.Object) (string, error) {
	from, err := document(before)
	if err != nil {
		return "", err
	}
	to, err := document(after)
	if err != nil {
		return "", err
	}
	return Unified(name+" (live)", name+" (desired)", from, to)
}

// Unified returns the unified diff of two texts, "" if they are equal.
func Unified(from, to, before, after string) (string, error) {
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(before), B: lines(after), FromFile: from, ToFile: to, Context: 3,
	})
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return difflib.SplitLines(text[:len(text)-1]) // It adds the last end of line.
}

func document(obj client.Object) (string, error) {
	if obj == nil {
		return "", nil
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return "", err
	}
	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil {
		return "", err
	}
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	delete(content, "status")
	text, err := yaml.Marshal(content)
	return string(text), err
}
