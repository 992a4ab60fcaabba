// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package create returns, without a cluster, what the API server and the operator's webhooks
// answer to the creation of an object. Each step is the API server's own code or the
// webhook's own handler, in the order of a real request:
//
//  1. decode: unknown and duplicate fields, as by field validation;
//  2. the defaults of the CRD's schema;
//  3. the mutating webhook, and the defaults of the schema again;
//  4. the schema and its CEL rules, and the rules of metadata;
//  5. the validating webhook.
//
// The first step with an error is the last one. What only a cluster knows is not considered:
// other webhooks, policies, quotas, permissions, and whether the name is taken.
package create

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
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

// Response is what the API server answers.
type Response struct {
	// Object is the object as it would be stored, nil if there is an error.
	Object   *unstructured.Unstructured
	Warnings []string
	// Strict are the errors of unknown and duplicate fields, if these are the error.
	Strict []error
	// Err is the error, nil if the object is created.
	Err *apierrors.StatusError
}

// Dry returns the response to a request that creates an object of a kind. An error is that
// the kind's CRD cannot be used.
func Dry(ctx context.Context, kind *kinds.Kind, req Request) (Response, error) {
	served, err := served(kind)
	if err != nil {
		return Response{}, err
	}
	c := creation{resource: served, Request: req}
	obj, err := c.create(request.WithNamespace(ctx, req.Namespace))
	if err != nil {
		c.Err = statusError(err)
		return c.Response, nil
	}
	c.Object = obj
	return c.Response, nil
}

// creation is a request on its way through the steps.
type creation struct {
	*resource
	Request
	Response
}

func (c *creation) create(ctx context.Context) (*unstructured.Unstructured, error) {
	obj, err := c.decode()
	if err != nil {
		return nil, err
	}
	rest.WipeObjectMetaSystemFields(obj)
	if err := rest.EnsureObjectNamespaceMatchesRequestNamespace(c.Namespace, obj); err != nil {
		return nil, err
	}
	if obj, err = c.mutate(ctx, obj); err != nil {
		return nil, err
	}
	rest.FillObjectMetaSystemFields(obj)
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(c.strategy.GenerateName(obj.GetGenerateName()))
	}
	if err := rest.BeforeCreate(c.strategy, ctx, obj); err != nil {
		return nil, err
	}
	c.Warnings = append(c.Warnings, c.strategy.WarningsOnCreate(ctx, obj)...)
	return obj, c.validate(ctx, obj)
}

// mutate calls the mutating webhook, and sets the defaults of the schema in what it added.
func (c *creation) mutate(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resp, err := c.call(ctx, c.kind.Default, "default", obj)
	if err != nil || len(resp.Patch) == 0 {
		return obj, err
	}
	patch, err := jsonpatch.DecodePatch(resp.Patch)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	before, err := obj.MarshalJSON()
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	mutated := &unstructured.Unstructured{}
	if err := mutated.UnmarshalJSON(after); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	structuraldefaulting.Default(mutated.Object, c.schema)
	return mutated, nil
}

// validate calls the validating webhook.
func (c *creation) validate(ctx context.Context, obj *unstructured.Unstructured) error {
	_, err := c.call(ctx, c.kind.Validate, "validate", obj)
	return err
}

// call calls a webhook. Its name is that in the webhook configuration, and its refusal has
// the words of the API server.
func (c *creation) call(ctx context.Context, handler admission.Handler, webhook string, obj *unstructured.Unstructured) (admission.Response, error) {
	raw, err := obj.MarshalJSON()
	if err != nil {
		return admission.Response{}, apierrors.NewInternalError(err)
	}
	resp := handler.Handle(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind:      metav1.GroupVersionKind(c.kind.GVK),
		Name:      obj.GetName(),
		Namespace: c.Namespace,
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: raw},
	}})
	c.Warnings = append(c.Warnings, resp.Warnings...)
	if !resp.Allowed {
		name := fmt.Sprintf("%s.%s.%s", webhook, c.kind.Singular(), c.kind.GVK.Group)
		return resp, webhookerrors.ToStatusErr(name, copyOf(resp.Result))
	}
	return resp, nil
}

// copyOf returns a copy, because ToStatusErr changes what it gets.
func copyOf(result *metav1.Status) *metav1.Status {
	if result == nil {
		return nil
	}
	return result.DeepCopy()
}

// statusError returns an error as the API server sends it.
func statusError(err error) *apierrors.StatusError {
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		return &apierrors.StatusError{ErrStatus: known.Status()}
	}
	return apierrors.NewInternalError(err)
}

// Into decodes a stored object into the type of its kind.
func Into(obj *unstructured.Unstructured, into any) error {
	data, err := obj.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}
