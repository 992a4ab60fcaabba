// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// TestNoRuleCostsHalfOfTheBudget validates the CRDs as the API server does that stores them, with
// rules that cost twice as much as they are estimated to do. Before Kubernetes 1.34, the estimate ignores maxLength
// of a field that is an integer or a string: the text in it may be as long as a request.
func TestNoRuleCostsHalfOfTheBudget(t *testing.T) {
	for kind, crd := range crds(t) {
		eachNode(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, func(node *apiextensionsv1.JSONSchemaProps) {
			if node.XIntOrString {
				node.MaxLength = nil
			}
			for i, rule := range node.XValidations {
				node.XValidations[i].Rule = "(" + rule.Rule + ") && (" + rule.Rule + ")"
			}
		})
		crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
		var internal apiextensions.CustomResourceDefinition
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal, nil); err != nil {
			t.Fatal(err)
		}
		for _, problem := range validation.ValidateCustomResourceDefinition(context.Background(), &internal) {
			t.Errorf("%s, when each rule costs twice as much: %v", kind, problem)
		}
	}
}

// eachNode calls visit for a schema and for all below it.
func eachNode(schema *apiextensionsv1.JSONSchemaProps, visit func(*apiextensionsv1.JSONSchemaProps)) {
	visit(schema)
	for name, property := range schema.Properties {
		eachNode(&property, visit)
		schema.Properties[name] = property
	}
	if schema.Items != nil {
		eachNode(schema.Items.Schema, visit)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		eachNode(schema.AdditionalProperties.Schema, visit)
	}
}
