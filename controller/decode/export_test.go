// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object is the object in data as a watch would bring it, nil if client-go's decoder
// has to say why it is none.
func Object(scheme *runtime.Scheme, kind schema.GroupVersionKind, data []byte) client.Object {
	c := newCodecs(scheme, kind)
	return objects{kind: c.kind, typ: c.typ}.object(data)
}
