// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package create

import (
	"encoding/json"
	"errors"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapi "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	kjson "sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

// SchemaOf returns a copy of the schema of a kind's CRD. The embedded CRDs have been tested, so an
// error is one of the program.
func SchemaOf(kind *kinds.Kind) *spec.Schema {
	data, err := json.Marshal(kind.CRD().Spec.Versions[0].Schema.OpenAPIV3Schema)
	utilruntime.Must(err)
	out := &spec.Schema{}
	utilruntime.Must(json.Unmarshal(data, out))
	return out
}

// complete sets the defaults of the schema, and removes each null that the schema does not allow,
// as the API server does.
func complete(s *apiextensionsv1.JSONSchemaProps, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, property := range s.Properties {
			if given, ok := value[name]; ok && given == nil && !property.Nullable {
				delete(value, name)
			}
			if _, ok := value[name]; !ok && property.Default != nil {
				var byDefault any
				utilruntime.Must(kjson.UnmarshalCaseSensitivePreserveInts(property.Default.Raw, &byDefault))
				value[name] = byDefault
			}
			complete(&property, value[name])
		}
	case []any:
		if s.Items != nil {
			for _, item := range value {
				complete(s.Items.Schema, item)
			}
		}
	}
}

// bySchema returns the errors of an object by its schema.
func bySchema(s *spec.Schema, object map[string]any) (errs field.ErrorList) {
	for _, err := range validate.NewSchemaValidator(s, nil, "", strfmt.Default).Validate(object).Errors {
		var path *field.Path
		text, code := err.Error(), int32(0)
		if known, ok := errors.AsType[*openapi.Validation](err); ok {
			text, code = strings.TrimPrefix(text, known.Name+" in body "), known.Code()
			if name := strings.Trim(known.Name, "."); name != "" {
				path = field.NewPath(name)
			}
		}
		switch code {
		case openapi.RequiredFailCode:
			errs = append(errs, field.Required(path, ""))
		case openapi.InvalidTypeCode:
			errs = append(errs, field.TypeInvalid(path, field.OmitValueType{}, text))
		default:
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, text))
		}
	}
	return errs
}
