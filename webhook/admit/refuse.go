// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"encoding/json"
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

// undecodable says what a decoder found, without the decoder's words for it
// where it names the field. Lists have no index in its paths.
func undecodable(err error) field.ErrorList {
	if bad, ok := errors.AsType[*fieldErrors](err); ok {
		return bad.list
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return field.ErrorList{field.TypeInvalid(field.NewPath(wrong.Field), wrong.Value, "cannot be read as "+wrong.Type.String())}
	}
	return field.ErrorList{field.Invalid(field.NewPath("(root)"), field.OmitValueType{}, err.Error())}
}
