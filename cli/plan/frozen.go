// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
)

// Frozen reports whether a namespace is frozen, and the reason that its annotation has, which may
// be empty. A namespace that does not exist is not frozen.
func Frozen(ctx context.Context, c client.Reader, namespace string) (reason string, frozen bool, err error) {
	obj := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: namespace}, obj); client.IgnoreNotFound(err) != nil {
		return "", false, fmt.Errorf("reading whether namespace %q is frozen: %w", namespace, err)
	}
	reason, frozen = obj.Annotations[api.AnnotationFrozen]
	return reason, frozen, nil
}

// freeze returns a sentence about the freeze of a namespace, "" if it is not frozen.
func (p *Planner) freeze(ctx context.Context, namespace string) string {
	text, known := p.frozen[namespace]
	if known {
		return text
	}
	reason, frozen, err := Frozen(ctx, p.Client, namespace)
	if frozen {
		text = fmt.Sprintf("namespace %s is frozen (%s)", namespace, reason)
	}
	if err != nil {
		p.hidden = append(p.hidden, err.Error())
	}
	p.frozen[namespace] = text
	return text
}
