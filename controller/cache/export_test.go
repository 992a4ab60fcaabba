// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DecodeObject returns the object in data as a watch event has it, nil if only client-go's
// decoder can decode it.
func DecodeObject(scheme *runtime.Scheme, kind schema.GroupVersionKind, data []byte) client.Object {
	s := newSerializer(scheme, kind)
	return objectDecoder{kind: s.kind, typ: s.typ}.decodeObject(data)
}

// Packed returns the object that a reader of the cache gets.
func Packed(obj client.Object) client.Object {
	return Unpack[client.Object](new(packer).pack(obj, false))
}

// Marshal returns the encoded object.
func Marshal(obj client.Object) ([]byte, error) { return marshal(obj) }
