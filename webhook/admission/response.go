// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

func allowed() admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
}

// status returns a refusal with the status of an error. admission.Errored and
// admission.Denied have no reason, or no causes.
func status(err *apierrors.StatusError) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &err.ErrStatus}}
}

// invalid returns the refusal that the API server would give for the same errors.
func (h *handler[T, P]) invalid(name string, errs field.ErrorList) admission.Response {
	return status(apierrors.NewInvalid(h.GVK.GroupKind(), name, rules.First(errs)))
}

func refused(err error) admission.Response { return status(apierrors.NewBadRequest(err.Error())) }

func internalError(err error) admission.Response { return status(apierrors.NewInternalError(err)) }

// undecodable returns the error for an object of which nothing can be decoded.
func undecodable(err error) field.ErrorList {
	if misfit, ok := errors.AsType[*field.Error](err); ok {
		return field.ErrorList{misfit}
	}
	return field.ErrorList{field.Invalid(field.NewPath("(root)"), field.OmitValueType{}, err.Error())}
}
