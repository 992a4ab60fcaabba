// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// ReadinessOf returns the readiness of an owner whose children could not be built or
// applied because of err, nil if err has no meaning for its status, and the error that is
// to be retried. What ends with a watch event, such as a name conflict or the deletion of
// an old child, is not retried. Result turns the error into the result of a reconcile.
func ReadinessOf(err error) (*status.Readiness, error) {
	if err == nil {
		return nil, nil
	}
	var invalid *rules.InvalidSpecError
	var conflict *ConflictError
	var refused *RefusedError
	var contested *ContestedError
	var readiness status.Readiness
	switch {
	case errors.As(err, &invalid):
		readiness, err = status.NewStalled(status.ReasonInvalidSpec, invalid.Error()), nil
	case errors.As(err, &conflict):
		readiness, err = status.NewStalled(status.ReasonNameConflict, conflict.Error()), nil
	case errors.Is(err, ErrDeleting):
		readiness, err = status.NewReconciling(status.ReasonWaitingForDeletion, err.Error()), nil
	case errors.Is(err, ErrPaused):
		readiness, err = status.Readiness{Reason: status.ReasonPaused, Message: err.Error()}, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		readiness, err = status.NewStalled(status.ReasonTerminating, "the namespace is being deleted: no object can be created in it"), nil
	case errors.As(err, &contested):
		readiness = status.NewStalled(status.ReasonContested, contested.Error())
	case errors.As(err, &refused):
		readiness = status.NewStalled(status.ReasonChildRefused, refused.Error())
	default:
		return nil, err
	}
	return &readiness, err
}
