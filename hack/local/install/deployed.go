// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaseName is the name of the Lease that controllers compete for (controller/lease.go).
const leaseName = "modelbox-controller"

// Deployed returns the kind and name of the first of the webhook configurations among objects
// that exists in the cluster. It is empty if none does.
func Deployed(ctx context.Context, c client.Reader, objects []*unstructured.Unstructured) (string, error) {
	for _, configuration := range OfKind(objects, webhookKinds...) {
		name := configuration.GetKind() + " " + configuration.GetName()
		err := c.Get(ctx, client.ObjectKeyFromObject(configuration), configuration.DeepCopy())
		if err == nil {
			return name, nil
		}
		if !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return "", nil
}

// LeaseNamespace returns the namespace of the controller's lease in a cluster with other users:
// that of an install if it exists, and otherwise that of the context, which must exist. The
// controller has the same default.
func LeaseNamespace(ctx context.Context, c client.Reader, ofContext string) (string, error) {
	for _, name := range []string{Namespace, ofContext} {
		err := c.Get(ctx, types.NamespacedName{Name: name}, &corev1.Namespace{})
		if err == nil {
			return name, nil
		}
		if !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("reading namespace %s: %w", name, err)
		}
	}
	return "", fmt.Errorf("the namespace %[1]s of the context does not exist, so the controller's lease cannot be created: "+
		"kubectl create namespace %[1]s", ofContext)
}

// LeaseHolder returns the identity of the controller that holds the lease in a namespace. It is
// empty if none does.
func LeaseHolder(ctx context.Context, c client.Reader, namespace string) (string, error) {
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: leaseName}, lease)
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return heldBy(lease, time.Now()), nil
}

// heldBy returns the holder of a lease that has not expired.
func heldBy(lease *coordinationv1.Lease, now time.Time) string {
	spec := lease.Spec
	if spec.HolderIdentity == nil || spec.RenewTime == nil {
		return ""
	}
	lasts := time.Duration(*cmp.Or(spec.LeaseDurationSeconds, new(int32))) * time.Second
	if now.After(spec.RenewTime.Add(lasts)) {
		return ""
	}
	return *spec.HolderIdentity
}
