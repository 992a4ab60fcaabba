// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// Selector returns the selector of a Deployment or a DaemonSet. That of an object of the cache
// which is too long to be held is read from the API server, which stores none of these objects
// without one.
func Selector(ctx context.Context, live client.Reader, obj client.Object) (*metav1.LabelSelector, error) {
	if held := selectorOf(obj); held != nil {
		return held, nil
	}
	stored := kinds.NewOf(obj)
	if err := live.Get(ctx, client.ObjectKeyFromObject(obj), stored); err != nil {
		return nil, fmt.Errorf("reading the selector of %q: %w", obj.GetName(), err)
	}
	return selectorOf(stored), nil
}

func selectorOf(obj client.Object) *metav1.LabelSelector {
	if set, ok := obj.(*appsv1.DaemonSet); ok {
		return set.Spec.Selector
	}
	return obj.(*appsv1.Deployment).Spec.Selector
}
