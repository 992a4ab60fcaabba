// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package create

import (
	"fmt"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	schemaobjectmeta "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	structuralpruning "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// creator makes the objects that bodies are decoded into.
type creator struct{}

func (creator) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj, nil
}

// decode decodes the body as the API server does, and sets the defaults of the schema.
func (c *creation) decode() (*unstructured.Unstructured, error) {
	strict := c.Validation != metav1.FieldValidationIgnore
	serializer := json.NewSerializerWithOptions(json.DefaultMetaFactory, creator{}, crdserverscheme.NewUnstructuredObjectTyper(),
		json.SerializerOptions{Yaml: c.YAML, Strict: strict})
	decoded, gvk, err := serializer.Decode(c.Body, &c.kind.GVK, &unstructured.Unstructured{})
	errs, err := strictErrors(decoded, err)
	if err != nil {
		return nil, c.undecodable(gvk, err)
	}
	obj := decoded.(*unstructured.Unstructured)
	unknown, err := c.coerce(obj, strict)
	if err != nil {
		return nil, c.undecodable(gvk, err)
	}
	for _, path := range unknown {
		errs = append(errs, fmt.Errorf(`unknown field "%s"`, path))
	}
	if err := c.reportStrict(errs); err != nil {
		return nil, c.undecodable(gvk, err)
	}
	structuraldefaulting.Default(obj.Object, c.schema)
	return obj, nil
}

// strictErrors separates the errors of a strict decode from one that left no object.
func strictErrors(decoded runtime.Object, err error) ([]error, error) {
	if err == nil {
		return nil, nil
	}
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok || decoded == nil {
		return nil, err
	}
	return strict.Errors(), nil
}

// reportStrict returns the error of unknown and duplicate fields, or warns of them.
func (c *creation) reportStrict(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	if c.Validation == metav1.FieldValidationStrict {
		c.Strict = errs
		return runtime.NewStrictDecodingError(errs)
	}
	for _, err := range errs {
		c.Warnings = append(c.Warnings, Lines(err)...)
	}
	return nil
}

// Lines returns the texts of an error of a strict decode: that of YAML has several, after a
// line that the API server leaves out of its warnings.
func Lines(err error) []string {
	text, ok := strings.CutPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	if !ok {
		return []string{err.Error()}
	}
	lines := strings.Split(strings.TrimPrefix(text, "unmarshal errors:\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

func (c *creation) undecodable(gvk *schema.GroupVersionKind, err error) error {
	if gvk == nil {
		gvk = &c.kind.GVK
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, c.kind.GVK.Kind, err))
}

// coerce removes from an object what its schema does not have, as unstructuredSchemaCoercer of
// k8s.io/apiextensions-apiserver does, and returns the paths of what it removed.
func (c *creation) coerce(obj *unstructured.Unstructured, strict bool) ([]string, error) {
	apiVersion, kind := obj.GetAPIVersion(), obj.GetKind()
	metadata, found, unknown, err := schemaobjectmeta.GetObjectMetaWithOptions(obj.Object, schemaobjectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: strict})
	if err != nil {
		return nil, err
	}
	unknown = append(unknown, structuralpruning.PruneWithOptions(obj.Object, c.schema, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: strict})...)
	structuraldefaulting.PruneNonNullableNullsWithoutDefaults(obj.Object, c.schema)
	coerceErr, paths := schemaobjectmeta.CoerceWithOptions(nil, obj.Object, c.schema, false, schemaobjectmeta.CoerceOptions{ReturnUnknownFieldPaths: strict})
	if coerceErr != nil {
		return nil, coerceErr
	}
	obj.SetKind(kind)
	obj.SetAPIVersion(apiVersion)
	if found {
		if err := schemaobjectmeta.SetObjectMeta(obj.Object, metadata); err != nil {
			return nil, err
		}
	}
	return append(unknown, paths...), nil
}
