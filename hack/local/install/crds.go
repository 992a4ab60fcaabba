// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Found is what a cluster has of the CRDs of this clone, by their names.
type Found struct {
	// Missing are those that it does not serve, and Different those with another spec.
	Missing, Different []string
}

// CompareCRDs compares the CustomResourceDefinitions among objects with those of a cluster,
// and writes nothing. It fails if there is none, or if one cannot be read.
func CompareCRDs(ctx context.Context, c client.Reader, objects []*unstructured.Unstructured) (Found, error) {
	var found Found
	crds := OfKind(objects, "CustomResourceDefinition")
	if len(crds) == 0 {
		return found, errors.New("there is no CustomResourceDefinition to compare with: run make generate")
	}
	for _, crd := range crds {
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(crd.GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(crd), current)
		switch {
		case apierrors.IsNotFound(err), err == nil && !established(current):
			found.Missing = append(found.Missing, crd.GetName())
			continue
		case err != nil:
			return found, fmt.Errorf("reading %s: %w", crd.GetName(), err)
		}
		same, err := sameCRD(crd, current)
		if err != nil {
			return found, fmt.Errorf("comparing %s: %w", crd.GetName(), err)
		}
		if !same {
			found.Different = append(found.Different, crd.GetName())
		}
	}
	return found, nil
}

// sameCRD reports whether two CustomResourceDefinitions have the same spec, once the defaults
// of the API server are set in both.
func sameCRD(a, b *unstructured.Unstructured) (bool, error) {
	specs := make([]apiextensionsv1.CustomResourceDefinition, 2)
	for i, crd := range []*unstructured.Unstructured{a, b} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, &specs[i]); err != nil {
			return false, err
		}
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&specs[i].Spec)
	}
	return equality.Semantic.DeepEqual(specs[0].Spec, specs[1].Spec), nil
}
