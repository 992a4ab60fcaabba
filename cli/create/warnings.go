// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package create

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// applied returns managedFields as the API server computes them for the apply of a new object: a
// manifest is to be applied, and warnings are about the fields that it has.
func applied(object *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	fields, err := fieldpath.SetFromValue(value.NewValueInterface(object.Object)).ToJSON()
	utilruntime.Must(err) // It has been decoded from JSON.
	return []metav1.ManagedFieldsEntry{{Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(string(fields))}}
}

// whole returns warnings in which what follows a colon at the end belongs to the one before.
func whole(warnings []string) (out []string) {
	for i, text := range warnings {
		if i > 0 && strings.HasSuffix(warnings[i-1], ":") {
			out[len(out)-1] += "\n" + text
		} else {
			out = append(out, text)
		}
	}
	return out
}
