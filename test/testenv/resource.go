// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource returns the resource of a kind. meta.UnsafeGuessKindToResource does not know the plural
// of a box.
func Resource(kind schema.GroupVersionKind) schema.GroupVersionResource {
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	if strings.HasSuffix(kind.Kind, "Box") {
		resource.Resource = strings.ToLower(kind.Kind) + "es"
	}
	return resource
}
