// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package create checks the creation of an object without a cluster, and returns the object as it
// would be stored: a strict decode, the schema of the CRD, and the defaults and rules that
// admission runs. All errors are returned at once. The CEL rules of the schema are not evaluated,
// because the rules of admission say the same. What only a cluster knows is not considered: other
// webhooks, policies, quotas, permissions, and whether the name is taken.
package create

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Request is the creation of an object.
type Request struct {
	// Body is the object, in YAML if YAML is set and in JSON otherwise.
	Body []byte
	YAML bool
	// Namespace is that of the request.
	Namespace string
	// Validation is what is done about unknown and duplicate fields: Strict, Warn or Ignore,
	// the values of a request's parameter fieldValidation. The default is Warn.
	Validation string
}

// Response is the result of a creation.
type Response struct {
	// Object is the object as it would be stored, nil if there is an error.
	Object   *unstructured.Unstructured
	Warnings []string
	// Strict are the errors of unknown and duplicate fields, if these are errors.
	Strict []string
	// Invalid are all other errors.
	Invalid field.ErrorList
}

// Err returns all errors as one, nil if the object is created.
func (r *Response) Err() error {
	errs := make([]error, 0, len(r.Strict)+len(r.Invalid))
	for _, text := range r.Strict {
		errs = append(errs, errors.New(text))
	}
	for _, err := range r.Invalid {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Dry returns the result of a request that creates an object of a kind.
func Dry(kind *kinds.Kind, req Request) (r Response) {
	object, data, duplicates, err := decode(&req)
	if err != nil {
		return undecodable(nil, err)
	}
	s := schemaOf(kind)
	s.complete(object.Object)
	clean(object, req.Namespace)
	bySchema := s.validate(object.Object)
	if r.Invalid = rules.Expensive(field.NewPath("spec"), object.Object["spec"]); len(r.Invalid) > 0 {
		r.add(bySchema)
		return r // To decode it could take minutes.
	}
	obj, ops := kind.New(), &patch.Ops{}
	unknown, _ := kjson.UnmarshalStrict(data, kind.New()) // The next decoder returns the error.
	r.report(append(duplicates, unknown...), req.Validation)
	if err := Into(object, obj); err != nil {
		r.Invalid = undecodable(bySchema, err).Invalid
		return r
	}
	kind.Default(obj, ops)
	r.Invalid = kind.Validate(obj)
	r.add(validation.ValidateObjectMetaAccessor(obj, true, validation.NameIsDNSSubdomain, field.NewPath("metadata")))
	r.add(bySchema)
	if len(r.Strict)+len(r.Invalid) > 0 {
		return r
	}
	r.Warnings = append(r.Warnings, kind.Warn(obj)...)
	if r.Object, err = patched(object, ops); err != nil {
		return undecodable(nil, err)
	}
	s.complete(r.Object.Object)
	return r
}

// undecodable returns the errors of an object that is not decoded. The schema names all values of
// a wrong type, and the decoder only the first.
func undecodable(bySchema field.ErrorList, err error) Response {
	if len(bySchema) == 0 {
		bySchema = field.ErrorList{field.Invalid(nil, field.OmitValueType{}, err.Error())}
	}
	return Response{Invalid: bySchema}
}

// decode decodes the body. It returns the body as JSON, too, and the errors of duplicate keys in
// YAML; those in JSON are found by a decode into the type.
func decode(req *Request) (object *unstructured.Unstructured, data []byte, duplicates []error, err error) {
	if data = req.Body; req.YAML {
		if _, err := yaml.YAMLToJSONStrict(data); err != nil {
			duplicates = lines(err)
		}
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return nil, nil, nil, err
		}
	}
	object = &unstructured.Unstructured{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object.Object); err != nil {
		return nil, nil, nil, err
	}
	if object.Object == nil {
		return nil, nil, nil, errors.New("it is not an object")
	}
	return object, data, duplicates, nil
}

// report adds the errors of unknown and duplicate fields.
func (r *Response) report(errs []error, validation string) {
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	switch validation {
	case metav1.FieldValidationStrict:
		r.Strict = texts
	case metav1.FieldValidationIgnore:
	default:
		r.Warnings = texts
	}
}

// lines returns an error of YAML as one for each line, which is named.
func lines(err error) (out []error) {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "unmarshal errors:\n"), "\n") {
		out = append(out, errors.New(strings.TrimSpace(line)))
	}
	return out
}

// assigned are the fields of metadata that the API server sets. It ignores them in a create.
var assigned = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields",
}

// clean prepares an object as the API server does before it calls a webhook.
func clean(object *unstructured.Unstructured, namespace string) {
	delete(object.Object, "status")
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

// patched returns an object with its defaults.
func patched(object *unstructured.Unstructured, ops *patch.Ops) (*unstructured.Unstructured, error) {
	if err := ops.Err(); err != nil || ops.Len() == 0 {
		return object, err
	}
	decoded, err := jsonpatch.DecodePatch(ops.JSON())
	if err != nil {
		return nil, fmt.Errorf("decoding the defaults: %w", err)
	}
	before, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	after, err := decoded.Apply(before)
	if err != nil {
		return nil, fmt.Errorf("setting the defaults: %w", err)
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON(after)
}

// Into decodes a stored object into the type of its kind.
func Into(obj *unstructured.Unstructured, into any) error {
	data, err := obj.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}
