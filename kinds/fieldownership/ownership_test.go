// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldownership_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
)

func TestHas(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sets []string
		want bool
	}{
		"no manager":                     {},
		"the field":                      {[]string{`{"f:spec":{"f:a":{"f:b":{}}}}`}, true},
		"something in it":                {[]string{`{"f:spec":{"f:a":{"f:b":{"f:c":{}}}}}`}, true},
		"itself and something in it":     {[]string{`{"f:spec":{"f:a":{"f:b":{".":{},"f:c":{}}}}}`}, true},
		"what it lies in, empty":         {[]string{`{"f:spec":{"f:a":{}}}`}, false},
		"an empty spec":                  {[]string{`{"f:spec":{}}`}, false},
		"what it lies in, and a sibling": {[]string{`{"f:spec":{".":{},"f:a":{".":{},"f:c":{}}}}`}, false},
		"a sibling":                      {[]string{`{"f:spec":{"f:b":{}}}`}, false},
		"its namesake elsewhere":         {[]string{`{"f:status":{"f:a":{"f:b":{}}}}`}, false},
		"the second of two":              {[]string{`{"f:spec":{"f:x":{}}}`, `{"f:spec":{"f:a":{"f:b":{}}}}`}, true},
	} {
		entries := []metav1.ManagedFieldsEntry{{Manager: "without fields"}}
		for _, set := range tc.sets {
			entries = append(entries, metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(set)})
		}
		set, err := fieldownership.Fields(entries...)
		if err != nil {
			t.Fatal(err)
		}
		if got := fieldownership.Has(set, fieldpath.MakePathOrDie("spec", "a", "b")); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
	if _, err := fieldownership.Fields(metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(`{"f:spec":`)}); err == nil {
		t.Error("a set that is broken is decoded")
	}
}
