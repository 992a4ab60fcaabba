// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package create

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

// resource is a kind as the API server serves it. It has one version.
type resource struct {
	kind     *kinds.Kind
	schema   *structuralschema.Structural
	strategy strategy
}

// strategy is what the API server's strategy of custom resources does for a create.
type strategy interface {
	rest.RESTCreateStrategy
}

// resources has a resource for each kind that was served before: to compile the CEL rules
// takes longer than to validate many objects.
var resources sync.Map

// served returns the resource of a kind, as crdHandler of k8s.io/apiextensions-apiserver makes
// it.
func served(kind *kinds.Kind) (*resource, error) {
	if known, ok := resources.Load(kind); ok {
		return known.(*resource), nil
	}
	made, err := newResource(kind)
	if err != nil {
		return nil, fmt.Errorf("reading the CRD of %s: %w", kind.GVK.Kind, err)
	}
	resources.Store(kind, made)
	return made, nil
}

func newResource(kind *kinds.Kind) (*resource, error) {
	internal := &apiextensions.CustomResourceDefinition{}
	crd := kind.CRD().DeepCopy()
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
		return nil, err
	}
	// With one version, the conversion moves its schema and its subresources to the top.
	openAPI, subresources := internal.Spec.Validation.OpenAPIV3Schema, internal.Spec.Subresources
	schema, err := structuralschema.NewStructural(openAPI)
	if err != nil {
		return nil, err
	}
	schema = schema.DeepCopy()
	if err := structuraldefaulting.PruneDefaults(schema); err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(openAPI)
	if err != nil {
		return nil, err
	}
	return &resource{kind: kind, schema: schema, strategy: customresource.NewStrategy(
		crdserverscheme.NewUnstructuredObjectTyper(), true, kind.GVK, validator, nil, schema,
		subresources.Status, subresources.Scale, crd.Spec.Versions[0].SelectableFields,
	)}, nil
}
