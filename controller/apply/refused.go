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

// RefusedError says that the API server refused to write a child, in its own
// words: a quota, a policy, missing rights, a value it does not allow.
type RefusedError struct {
	// Doing is what was being done: creating, applying or deleting.
	Doing string
	// Kind and Name are those of the child.
	Kind, Name string
	// Err is the API server's answer.
	Err error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s %s %q: %v", e.Doing, e.Kind, e.Name, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// Refused wraps the error of a write. An answer that a retry may change without
// anybody's doing is no refusal: a conflict, a timeout, an overloaded server, a child that
// the cache has not shown yet, or one that was deleted meanwhile.
func Refused(doing string, obj client.Object, err error) error {
	if err == nil {
		return nil
	}
	if passing(err) || apierrors.IsNotFound(err) && doing != "creating" {
		return fmt.Errorf("%s %s %q: %w", doing, kindOf(obj), obj.GetName(), err)
	}
	return &RefusedError{Doing: doing, Kind: kindOf(obj), Name: obj.GetName(), Err: err}
}

func passing(err error) bool {
	return !answered(err) ||
		apierrors.IsAlreadyExists(err) ||
		apierrors.IsConflict(err) ||
		apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err)
}

// answered tells a refusal from an error of the network. The API server does not give
// every answer a reason: the 500 for a list with the same key twice, for example, has
// none. Without a reason, what a proxy or a load balancer answers for a server that is away
// (502, 503, 504), or for too many requests, is no refusal.
func answered(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	if answer.Status().Reason != "" {
		return true
	}
	switch code := answer.Status().Code; code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	default:
		return code >= http.StatusBadRequest
	}
}
