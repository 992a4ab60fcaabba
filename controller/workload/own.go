// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReadOwn reads the child that has the owner's name, and reports whether there is one
// that the owner controls. Otherwise child is left empty.
func ReadOwn(ctx context.Context, c client.Reader, owner, child client.Object) (bool, error) {
	err := c.Get(ctx, client.ObjectKeyFromObject(owner), child)
	if err == nil && metav1.IsControlledBy(child, owner) {
		return true, nil
	}
	value := reflect.ValueOf(child).Elem()
	value.SetZero()
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading %s %q: %w", value.Type().Name(), owner.GetName(), err)
	}
	return false, nil
}
