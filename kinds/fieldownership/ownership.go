// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fieldownership reads from managedFields which fields of an object clients have set. The
// API server computes them before it calls mutating admission, so a field without a field manager is
// a default of admission. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
package fieldownership

import (
	"bytes"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Fields returns the fields of all entries. An entry that cannot be decoded is an error.
func Fields(entries ...metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	all := &fieldpath.Set{}
	for i := range entries {
		if entries[i].FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(entries[i].FieldsV1.GetRawBytes())); err != nil {
			return nil, fmt.Errorf("decoding the fields of manager %q: %w", entries[i].Manager, err)
		}
		all = all.Union(set)
	}
	return all, nil
}

// Has reports whether a set has a field or a part of it.
func Has(set *fieldpath.Set, path fieldpath.Path) bool {
	last := len(path) - 1
	for _, element := range path[:last] {
		set = set.WithPrefix(element)
	}
	return set.Members.Has(path[last]) || !set.WithPrefix(path[last]).Empty()
}

// IsDeclared reports whether a manifest has a field of the spec, with any value: one of a
// server-side apply, or that of the last client-side apply. A number that was set by another
// request is not declared.
func IsDeclared(meta metav1.Object, name string) bool {
	var manifest map[string]any
	if text := meta.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; text != "" {
		_ = kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &manifest) // Otherwise it declares nothing.
	}
	_, declared, _ := unstructured.NestedFieldNoCopy(manifest, "spec", name)
	for _, entry := range meta.GetManagedFields() {
		isApply := entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
		declared = declared || isApply && has(entry, "spec", name)
	}
	return declared
}

// IsPatched reports whether a client that applies no manifest has set a field of the spec of an
// object that has one, as by "kubectl patch". Of an object without a manifest that is not known: a
// client that replaces it sets all of its fields.
func IsPatched(meta metav1.Object, name string) bool {
	var hasManifest, patched bool
	for _, entry := range meta.GetManagedFields() {
		applies := entry.Operation == metav1.ManagedFieldsOperationApply || has(entry, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
		switch {
		case entry.Subresource != "":
		case applies:
			hasManifest = true
		case has(entry, "spec", name):
			patched = true
		}
	}
	return hasManifest && patched
}

// has reports whether an entry has a field, or some of its fields. One that cannot be decoded has all.
func has(entry metav1.ManagedFieldsEntry, path ...any) bool {
	set, err := Fields(entry)
	return err != nil || Has(set, fieldpath.MakePathOrDie(path...))
}
