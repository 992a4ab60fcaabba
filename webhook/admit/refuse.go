// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// invalid is the refusal that the API server would give for the same errors.
func (j *judge[T, P]) invalid(name string, errs field.ErrorList) *metav1.Status {
	return new(apierrors.NewInvalid(j.GVK.GroupKind(), name, rules.First(errs)).Status())
}

func badRequest(message string) *metav1.Status {
	return new(apierrors.NewBadRequest(message).Status())
}

func internal(err error) *metav1.Status {
	return new(apierrors.NewInternalError(err).Status())
}

// undecodable is the error for an object of which nothing can be decoded.
func undecodable(err error) field.ErrorList {
	if misfit, ok := errors.AsType[*field.Error](err); ok {
		return field.ErrorList{misfit}
	}
	return field.ErrorList{field.Invalid(field.NewPath("(root)"), field.OmitValueType{}, err.Error())}
}
