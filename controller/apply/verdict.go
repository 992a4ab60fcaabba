// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// Judge says what an error of Children means for the owner's status, nil if it
// means nothing there, and returns the error that is still to be retried. What
// heals by an event, a name conflict that goes or an old child that is gone, is
// not retried. Result makes of the error what a reconcile returns.
func Judge(err error) (*status.Verdict, error) {
	var conflict *ConflictError
	var refusal *RefusedError
	var contested *ContestedError
	var verdict status.Verdict
	switch {
	case errors.As(err, &conflict):
		verdict, err = status.Stuck(status.ReasonNameConflict, conflict.Error()), nil
	case errors.Is(err, ErrDeleting):
		verdict, err = status.Underway(status.ReasonWaitingForDeletion, err.Error()), nil
	case errors.Is(err, ErrPaused):
		verdict, err = status.Verdict{Reason: status.ReasonPaused, Message: err.Error()}, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		verdict, err = status.Stuck(status.ReasonTerminating, "the namespace is being deleted: nothing new can be written in it"), nil
	case errors.As(err, &contested):
		verdict = status.Stuck(status.ReasonContested, contested.Error())
	case errors.As(err, &refusal):
		verdict = status.Stuck(status.ReasonChildRefused, refusal.Error())
	default:
		return nil, err
	}
	return &verdict, err
}
