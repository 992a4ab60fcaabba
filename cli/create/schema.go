// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package create

import (
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

// schema is the schema of a kind's CRD, with what the API server does by it.
type schema struct {
	structural *structuralschema.Structural
	validation.SchemaValidator
}

// schemaOf returns the schema of a kind. The embedded CRDs have been tested, so an error is one of the program.
func schemaOf(kind *kinds.Kind) *schema {
	internal := &apiextensions.JSONSchemaProps{}
	props := kind.CRD().Spec.Versions[0].Schema.OpenAPIV3Schema.DeepCopy()
	utilruntime.Must(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil))
	structural, err := structuralschema.NewStructural(internal)
	utilruntime.Must(err)
	validator, _, err := validation.NewSchemaValidator(internal)
	utilruntime.Must(err)
	return &schema{structural, validator}
}

// complete sets the defaults of the schema, and removes each null that the schema does not allow.
func (s *schema) complete(object map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)
}
