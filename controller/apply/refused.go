// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RefusedError reports that the API server refused to write a child, with the API server's
// message: a quota, a policy, missing rights, an invalid value.
type RefusedError struct {
	// Doing is the operation: creating, applying or deleting.
	Doing string
	// Kind and Name are those of the child.
	Kind, Name string
	// Err is the error in the API server's response.
	Err error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s %s %q: %v", e.Doing, e.Kind, e.Name, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// Refused wraps the error of a write. An error that a retry may resolve is not a refusal: a
// conflict, a timeout, an overloaded API server, a child that is not in the cache yet, or one
// that was deleted meanwhile.
func Refused(doing string, obj client.Object, err error) error {
	if err == nil {
		return nil
	}
	if isTransient(err) || apierrors.IsNotFound(err) && doing != "creating" {
		return fmt.Errorf("%s %s %q: %w", doing, kindOf(obj), obj.GetName(), err)
	}
	return &RefusedError{Doing: doing, Kind: kindOf(obj), Name: obj.GetName(), Err: err}
}

func isTransient(err error) bool {
	return !isResponse(err) ||
		apierrors.IsAlreadyExists(err) ||
		apierrors.IsConflict(err) ||
		apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err)
}

// isResponse reports whether the error is a response of the API server, and not an error of
// the network. Not every response has a reason: the 500 for a list with the same key twice,
// for example, has none. The responses of a proxy or a load balancer for a server that is not
// available (502, 503, 504), or for too many requests, have none either.
func isResponse(err error) bool {
	var response apierrors.APIStatus
	if !errors.As(err, &response) {
		return false
	}
	if response.Status().Reason != "" {
		return true
	}
	switch code := response.Status().Code; code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	default:
		return code >= http.StatusBadRequest
	}
}
