// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freeze tells whether a namespace is frozen: its Namespace has the annotation
// api.AnnotationFrozen. Whatever replaces pods without a request of a user asks it immediately
// before, and not a cache: a freeze that a user has seen stored is in effect for the next action.
package freeze

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get

// maxReason is the maximum length of a reason, in bytes. The API server permits annotations of 256
// KiB.
const maxReason = 200

// Again is the time after which to read the Namespace again for what waits for the end of a freeze.
const Again = time.Minute

// Reader reads Namespaces.
type Reader struct {
	// Live reads from the API server. While it is nil, no namespace is frozen.
	Live client.Reader
}

// Frozen reports whether a namespace is frozen, and the reason that its annotation has, which may
// be empty. It sends one request. A namespace that does not exist is not frozen.
func (r Reader) Frozen(ctx context.Context, namespace string) (reason string, frozen bool, err error) {
	if r.Live == nil {
		return "", false, nil
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Live.Get(ctx, client.ObjectKey{Name: namespace}, obj); client.IgnoreNotFound(err) != nil {
		return "", false, fmt.Errorf("reading whether namespace %q is frozen: %w", namespace, err)
	}
	reason, frozen = obj.Annotations[api.AnnotationFrozen]
	return rules.Cut(reason, maxReason), frozen, nil
}
