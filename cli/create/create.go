// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package create checks the creation or the update of an object without a cluster, and returns the
// object as it would be stored: a strict decode, the schema of the CRD, and the defaults and rules
// that admission runs. All errors of these are returned at once; without one, those of the CEL
// rules of the schema, which say much of the same again. What only a cluster knows is not
// considered: other webhooks, policies, quotas, permissions, and whether the name is taken.
package create

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	crvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	domain "github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Request is the creation or the update of an object.
type Request struct {
	// Object is the object, and Duplicates are the errors of keys that its text has twice.
	Object     *unstructured.Unstructured
	Duplicates []error
	// Namespace is that of the request.
	Namespace string
	// AllowUnknown is that unknown and duplicate fields are no errors.
	AllowUnknown bool
	// Old is the stored object of an update, nil for a creation. Then Object is the whole object,
	// with metadata.managedFields of the update.
	Old *unstructured.Unstructured
	// Sizes are those of the cluster, nil if they are not known: then an object of a size has no
	// values.
	Sizes modelbox.Sizes
}

// Response is the result of a request.
type Response struct {
	// Object is the object as it would be stored, nil if there is an error.
	Object *unstructured.Unstructured
	// Warnings are those of admission. One that it sends as two, because warnings are short, is one
	// of two lines.
	Warnings []string
	// Strict are the errors of unknown and duplicate fields.
	Strict []error
	// Invalid are all other errors.
	Invalid field.ErrorList
}

// Err returns all errors as one, nil if the object is created.
func (r *Response) Err() error {
	errs := slices.Clone(r.Strict)
	for _, err := range r.Invalid {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Dry returns the result of a request for an object of a kind.
func Dry(kind *kinds.Kind, req Request) (r Response) {
	object, schema := req.Object.DeepCopy(), schemaOf(kind)
	schema.complete(object.Object)
	if delete(object.Object, "status"); req.Old == nil {
		clean(object, req.Namespace)
	}
	wrong := crvalidation.ValidateCustomResource(nil, object.Object, schema)
	if r.Invalid = rules.Expensive(field.NewPath("spec"), object.Object["spec"]); len(r.Invalid) > 0 {
		r.add(wrong)
		return r // To decode it could take minutes.
	}
	unknown, _ := Unknown(kind, req.Object) // The next decoder returns the error.
	if !req.AllowUnknown {
		r.Strict = slices.Concat(req.Duplicates, unknown)
	}
	obj, old, err := decoded(kind, object, req.Old)
	if err != nil {
		if r.Invalid = wrong; len(wrong) == 0 { // It names all values of a wrong type, and the decoder only the first.
			r.Invalid = field.ErrorList{field.Invalid(nil, field.OmitValueType{}, err.Error())}
		}
		return r
	}
	spec := kind.Encoder(obj, old)
	before := spec(obj)
	r.Invalid = kind.Default(obj, old, req.Sizes)
	r.Invalid = append(r.Invalid, rules.Others(kind.Validate(obj, old), r.Invalid)...)
	r.add(validation.ValidateObjectMetaAccessor(obj, true, validation.NameIsDNSSubdomain, field.NewPath("metadata")))
	r.add(wrong)
	if r.Invalid = causes(req.Object, r.Strict, r.Invalid); len(r.Strict)+len(r.Invalid) > 0 {
		return r
	}
	if req.Old == nil {
		obj.SetManagedFields(applied(req.Object))
	}
	r.Warnings = whole(kind.Warn(obj))
	if r.Object, err = patched(object, before, spec(obj)); err != nil {
		return Response{Invalid: field.ErrorList{field.InternalError(nil, err)}}
	}
	schema.complete(r.Object.Object)
	if r.Invalid = schema.rules(r.Object, req.Old); len(r.Invalid) > 0 {
		r.Object = nil
	}
	return r
}

// causes returns errors without those that follow from others: that of a field which is required,
// and which an unknown one is likely to be; and those of defaults, whose values are derived from
// other fields.
func causes(object *unstructured.Unstructured, strict []error, errs field.ErrorList) field.ErrorList {
	follows := func(err *field.Error) bool {
		names := strings.FieldsFunc(err.Field, func(r rune) bool { return r == '.' || r == '[' })
		_, set, _ := unstructured.NestedFieldNoCopy(object.Object, names[:min(len(names), 2)]...)
		return err.Type == field.ErrorTypeInvalid && len(names) > 1 && !set || err.Type == field.ErrorTypeRequired && slices.ContainsFunc(strict, func(u error) bool {
			known, ok := errors.AsType[*UnknownField](u)
			return ok && known.Nearest == err.Field
		})
	}
	if slices.ContainsFunc(errs, func(err *field.Error) bool { return !follows(err) }) || len(strict) > 0 {
		return slices.DeleteFunc(errs, follows)
	}
	return errs
}

// decoded returns an object, and the one that it updates. A stored object that cannot be decoded is
// none, as for admission.
func decoded(kind *kinds.Kind, object, stored *unstructured.Unstructured) (obj, old client.Object, err error) {
	obj = kind.New()
	if err := Into(object, obj); err != nil {
		return nil, nil, err
	}
	if stored != nil {
		was := kind.New()
		if Into(stored, was) == nil {
			old = was
		}
	}
	return obj, old, nil
}

// schema is the schema of a kind's CRD, with what the API server does by it.
type schema struct {
	structural *structuralschema.Structural
	crvalidation.SchemaValidator
	compiled func() *cel.Validator
}

var schemas sync.Map

// schemaOf returns the schema of a kind.
func schemaOf(kind *kinds.Kind) *schema {
	if known, ok := schemas.Load(kind); ok {
		return known.(*schema)
	}
	known, _ := schemas.LoadOrStore(kind, newSchema(kind))
	return known.(*schema)
}

// newSchema reads the schema of a kind. The embedded CRDs have been tested, so an error is one of
// the program.
func newSchema(kind *kinds.Kind) *schema {
	internal := &apiextensions.JSONSchemaProps{}
	props := kind.CRD().Spec.Versions[0].Schema.OpenAPIV3Schema.DeepCopy()
	utilruntime.Must(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil))
	structural, err := structuralschema.NewStructural(internal)
	utilruntime.Must(err)
	validator, _, err := crvalidation.NewSchemaValidator(internal)
	utilruntime.Must(err)
	return &schema{structural, validator, sync.OnceValue(func() *cel.Validator {
		return cel.NewValidator(structural, true, celconfig.PerCallLimit)
	})}
}

// rules returns the errors of the CEL rules for an object, and the stored one that it updates,
// which may be nil: an update may keep what was stored.
func (s *schema) rules(object, stored *unstructured.Unstructured) field.ErrorList {
	var old any
	var options []cel.Option
	if stored != nil {
		old = stored.Object
		options = append(options, cel.WithRatcheting(common.NewCorrelatedObject(object.Object, old, &model.Structural{Structural: s.structural})))
	}
	errs, _ := s.compiled().Validate(context.Background(), nil, s.structural, object.Object, old, celconfig.RuntimeCELCostBudget, options...)
	return errs
}

// complete sets the defaults of the schema, and removes each null that the schema does not allow.
func (s *schema) complete(object map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)
}

// assigned are the fields of metadata that the API server sets. It ignores them in a create.
var assigned = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields",
}

// clean prepares a new object as the API server does before it calls a webhook.
func clean(object *unstructured.Unstructured, namespace string) {
	if metadata, ok := object.Object["metadata"].(map[string]any); ok {
		for _, name := range assigned {
			delete(metadata, name)
		}
		if object.GetName() == "" && object.GetGenerateName() != "" {
			object.SetName(object.GetGenerateName() + rand.String(5))
		}
		object.SetNamespace(namespace)
	}
}

// add adds the errors of metadata and of the schema about other fields: where several errors are
// about one field, those of the rules explain it best.
func (r *Response) add(others field.ErrorList) {
	for _, err := range others {
		if !slices.ContainsFunc(r.Invalid, func(known *field.Error) bool { return known.Field == err.Field }) {
			r.Invalid = append(r.Invalid, err)
		}
	}
}

// patched returns an object with the defaults that make of a spec another one.
func patched(object *unstructured.Unstructured, before, after map[string]any) (*unstructured.Unstructured, error) {
	sent, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	ops, err := domain.Diff(sent, before, after)
	if err != nil {
		return object, nil //nolint:nilerr // The schema refuses it.
	}
	text, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("encoding the defaults: %w", err)
	}
	decoded, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, fmt.Errorf("decoding the defaults: %w", err)
	}
	stored, err := decoded.Apply(sent)
	if err != nil {
		return nil, fmt.Errorf("setting the defaults: %w", err)
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON(stored)
}

// Into decodes a stored object into the type of its kind.
func Into(obj *unstructured.Unstructured, into any) error {
	_, err := Strict(obj, into)
	return err
}

// UnknownField is a field that a kind does not have. Nearest is the path of the one that it is
// likely to be, "" if there is none.
type UnknownField struct{ Field, Nearest string }

func (u *UnknownField) Error() string {
	text := fmt.Sprintf("unknown field %q", u.Field)
	if u.Nearest != "" {
		text += "; the nearest one is " + u.Nearest
	}
	return text
}

// Unknown returns the errors of the unknown fields of an object of a kind, and the error of one
// that cannot be decoded.
func Unknown(kind *kinds.Kind, obj *unstructured.Unstructured) (unknown []error, err error) {
	unknown, err = Strict(obj, kind.New())
	for i := range unknown {
		if of, ok := errors.AsType[kjson.FieldError](unknown[i]); ok {
			unknown[i] = &UnknownField{of.FieldPath(), nearest(kind, of.FieldPath())}
		}
	}
	return unknown, err
}

// Strict decodes an object into the type of its kind, and returns the errors of its unknown fields
// as well.
func Strict(obj *unstructured.Unstructured, into any) (unknown []error, err error) {
	data, err := obj.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return kjson.UnmarshalStrict(data, into)
}
