// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
)

// isManaged reports whether an object has managedFields. Without them, who set its fields is not
// known.
func isManaged(obj any) bool { return len(obj.(metav1.Object).GetManagedFields()) > 0 }

// ownedBy returns the paths below spec that clients have set: those of managedFields, and of the values
// those that the last applied manifest has. A client-side apply does not send what is stored already,
// so its manager never owns a field whose default is added to the manifest later; and the manifest
// does not change when another client changes or removes the field. If managedFields
// cannot be decoded, all values may be set by a client, so they must not change.
func (u *update[T]) ownedBy(obj *T, values *Leaves) *fieldpath.Set {
	meta := any(obj).(metav1.Object)
	managed, err := fieldownership.Fields(meta.GetManagedFields()...)
	if err != nil {
		all := &fieldpath.Set{}
		for _, leaf := range values.All {
			all.Insert(leaf.Path)
		}
		return all
	}
	applied := new(T)
	if text := meta.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; text != "" {
		_ = kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), applied) // What is of another type is no value.
	}
	owned := managed.WithPrefix(fieldpath.FieldNameElement("spec")).Copy()
	manifest := u.derived.Of(u.Spec(applied))
	for _, leaf := range manifest.All {
		own := values.At(leaf)
		if leaf.isEmpty() || own != nil && (isEqual(leaf.Value, own.Value) || leaf.isItem() && isPart(leaf.Value, own.Value)) {
			owned.Insert(leaf.Path)
		}
	}
	return owned
}

// isPart reports whether an item has all fields of another one.
func isPart(of, item any) bool {
	fields, _ := of.(map[string]any)
	all, _ := item.(map[string]any)
	for name, field := range fields {
		if !isEqual(field, all[name]) {
			return false
		}
	}
	return true
}

func isEqual(a, b any) bool {
	return value.Equals(value.NewValueInterface(a), value.NewValueInterface(b))
}
