// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"errors"
	"fmt"
	"time"

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
type RefusedError struct {
	// Again is the time until the write is sent again, 0 if it was sent now.
	Again time.Duration

	error
}

// Unwrap returns the error in the API server's response.
func (e *RefusedError) Unwrap() error { return e.error }

// Reported implements status.Reported: ReadinessOf returns what status says of it.
func (*RefusedError) Reported() {}

// Refused wraps the error of a write. An error that a retry may resolve is not a refusal: a
// conflict, a timeout, an overloaded API server, a child that is not in the cache yet, or one that
// was deleted meanwhile.
func Refused(doing string, obj client.Object, err error) error {
	if err == nil {
		return nil
	}
	described := fmt.Errorf("%s %s %q: %w", doing, kinds.KindOf(obj), obj.GetName(), err)
	if limit.IsTransient(err) || apierrors.IsNotFound(err) && doing != "creating" {
		return described
	}
	refused := &RefusedError{error: described}
	if again, ok := errors.AsType[*limit.RefusedError](err); ok {
		refused.Again = again.Again
	}
	return refused
}

// concernsAll reports whether an error of one child is one of the others, too: of their owner, or
// of all its writes.
func concernsAll(err error) bool {
	_, isReadiness := errors.AsType[status.Readiness](err)
	_, isContested := errors.AsType[*limit.ContestedError](err)
	return isReadiness || isContested || errors.Is(err, ErrOwnerGone) || errors.Is(err, ErrStale)
}

// join joins the errors of two children. If one of them is a refusal, that is one too.
func join(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	first, isFirst := errors.AsType[*RefusedError](a)
	second, isSecond := errors.AsType[*RefusedError](b)
	joined := &RefusedError{error: fmt.Errorf("%w; %w", a, b)}
	switch {
	case isFirst && isSecond:
		joined.Again = min(first.Again, second.Again)
	case !isFirst && !isSecond:
		return joined.error
	}
	return joined
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
		if errors.Is(readiness, err) { // Otherwise there is an error of another child.
			err = nil
		}
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

// Result returns the result of a reconcile for an error of Apply: the owner of a contested child is
// reconciled again after RetryAfter, that of a refused one when it is written again, a deleted
// owner is not, and any other error is retried with back-off.
func Result(err error) (reconcile.Result, error) {
	var contested *limit.ContestedError
	var refused *RefusedError
	switch {
	case errors.Is(err, ErrOwnerGone):
		return reconcile.Result{}, nil
	case errors.As(err, &contested):
		return reconcile.Result{RequeueAfter: contested.RetryAfter}, nil
	case errors.As(err, &refused) && refused.Again > 0:
		return reconcile.Result{RequeueAfter: refused.Again}, nil
	}
	return reconcile.Result{}, err
}
