// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"

	kjson "sigs.k8s.io/json"
)

// Codec encodes and decodes the part of an object's spec that defaults may set. It is a function that
// sets all other fields of an object, its metadata and its status to those of another one.
type Codec[T any] func(to, from *T)

// Spec returns the part as decoded JSON. It is a copy.
func (c Codec[T]) Spec(obj *T) map[string]any {
	part := *obj
	c(&part, new(T))
	tree := struct {
		Spec map[string]any `json:"spec"`
	}{map[string]any{}}
	if data, err := json.Marshal(&part); err == nil { // It was decoded from JSON.
		_ = kjson.UnmarshalCaseSensitivePreserveInts(data, &tree)
	}
	return tree.Spec
}

// With returns a copy of an object with another part. It shares with the object what is not in it.
func (c Codec[T]) With(obj *T, spec map[string]any) *T {
	out := new(T)
	if data, err := json.Marshal(map[string]any{"spec": spec}); err == nil { // It was decoded from JSON.
		_ = kjson.UnmarshalCaseSensitivePreserveInts(data, out)
	}
	c(out, obj)
	return out
}
