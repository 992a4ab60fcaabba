// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// RefusedError reports that the API server refused to write a child, with the API server's
// message: a quota, a policy, missing rights, an invalid value.
type RefusedError struct{ error }

// Unwrap returns the error in the API server's response.
func (e *RefusedError) Unwrap() error { return e.error }

// Refused wraps the error of a write. An error that a retry may resolve is not a refusal, unless it
// lasts: a conflict, a timeout, an overloaded API server, a child that is not in the cache yet, or
// one that was deleted meanwhile.
func Refused(doing string, obj client.Object, err error) error {
	if err == nil {
		return nil
	}
	described := fmt.Errorf("%s %s %q: %w", doing, kinds.KindOf(obj), obj.GetName(), err)
	_, lasting := errors.AsType[*limit.LastingError](err)
	if !lasting && (isTransient(err) || apierrors.IsNotFound(err) && doing != "creating") {
		return described
	}
	return &RefusedError{described}
}

// alsoRefused adds a refusal to those of other children.
func alsoRefused(refused, also error) error {
	if refused == nil {
		return also
	}
	return &RefusedError{fmt.Errorf("%w; %w", refused, also)}
}

// isTransient reports whether the error is one of the network, or a response that a retry may change. It goes by the code:
// the responses of a proxy or a load balancer have no reason, nor have some of the API server, such as the
// 500 for a list with the same key twice, which stays.
func isTransient(err error) bool {
	var response apierrors.APIStatus
	if !errors.As(err, &response) {
		return true
	}
	switch response.Status().Code {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true // A conflict is also a child that exists already.
	}
	return apierrors.IsServerTimeout(err)
}

// ReadinessOf returns the readiness of an owner whose children could not be built or
// applied because of err, nil if err has no meaning for its status, and the error that is
// to be retried. What ends with a watch event, such as a name conflict or the deletion of
// an old child, is not retried. Result turns the error into the result of a reconcile.
func ReadinessOf(err error) (*status.Readiness, error) {
	readiness, known := errors.AsType[status.Readiness](err)
	contested, isContested := errors.AsType[*limit.ContestedError](err)
	refused, isRefused := errors.AsType[*RefusedError](err)
	switch {
	case known:
		err = nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		readiness, err = status.NewStalled(status.ReasonTerminating, "the namespace is being deleted: no object can be created in it"), nil
	case isContested:
		readiness = status.NewStalled(status.ReasonContested, contested.Error())
	case isRefused:
		readiness = status.NewStalled(status.ReasonChildRefused, refused.Error())
	default:
		return nil, err
	}
	return &readiness, err
}

// Result returns the result of a reconcile for an error of Apply: the owner of a contested
// child is reconciled again after RetryAfter, a deleted owner is not, and any other error is
// retried with back-off.
func Result(err error) (reconcile.Result, error) {
	var contested *limit.ContestedError
	switch {
	case errors.Is(err, ErrOwnerGone):
		return reconcile.Result{}, nil
	case errors.As(err, &contested):
		return reconcile.Result{RequeueAfter: contested.RetryAfter}, nil
	}
	return reconcile.Result{}, err
}
