// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Namespace is the operator's namespace, which contains for example its lease.
	Namespace = "modelbox-system"

	fieldManager = "modelbox-local"

	establishWithin = 30 * time.Second
	establishEvery  = 100 * time.Millisecond
)

// CRDs applies the CustomResourceDefinitions among objects, with forced ownership of
// their fields, and waits until the API server serves them.
// It fails if there is none, or if one is not established after 30 seconds.
func CRDs(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	crds := OfKind(objects, "CustomResourceDefinition")
	if len(crds) == 0 {
		return errors.New("there is no CustomResourceDefinition to install: run make generate")
	}
	for _, crd := range crds {
		if err := apply(ctx, c, crd); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, establishWithin)
	defer cancel()
	for _, crd := range crds {
		if err := awaitEstablished(ctx, c, crd); err != nil {
			return err
		}
	}
	return nil
}

// apply applies an object with server-side apply.
func apply(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	config := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
	if err := c.Apply(ctx, config, client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func awaitEstablished(ctx context.Context, c client.Client, crd *unstructured.Unstructured) error {
	ticker := time.NewTicker(establishEvery)
	defer ticker.Stop()
	for {
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(crd.GroupVersionKind())
		if err := c.Get(ctx, client.ObjectKeyFromObject(crd), current); err != nil {
			return fmt.Errorf("reading %s: %w", crd.GetName(), err)
		}
		if established(current) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to be established: %w", crd.GetName(), context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, ok := condition.(map[string]any)
		if ok && fields["type"] == string(apiextensionsv1.Established) && fields["status"] == string(apiextensionsv1.ConditionTrue) {
			return true
		}
	}
	return false
}

// NamespaceExists creates the operator's namespace if it does not exist.
func NamespaceExists(ctx context.Context, c client.Client) error {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(Namespace)
	return apply(ctx, c, namespace)
}
