// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// ErrDeleting reports that an object with the name of the child is being deleted, and that
// the child is created afterwards. The watch event of the deletion starts that reconcile.
var ErrDeleting = errors.New("waiting for the deletion of an old object")

// ErrPaused reports that a child differs from its desired state and was not written.
var ErrPaused = errors.New("spec.paused is true: changes are not written")

// ErrNameConflict reports that an object with the name of a child exists which the owner does
// not control. Such an object is never adopted, changed or deleted.
var ErrNameConflict = errors.New("already exists")

// ErrAutoscaled reports that the object has schedules, and that an autoscaler sets its replicas too.
var ErrAutoscaled = errors.New("scales this object, and so do its schedules")

// ErrFrozen reports that a number of replicas waits for the end of a freeze of the namespace.
var ErrFrozen = errors.New("the namespace is frozen")

// checkOwner returns an error unless the owner of the desired child controls live.
func checkOwner(live, desired client.Object) error {
	owner, held := metav1.GetControllerOfNoCopy(desired), "has no controller"
	switch controller := metav1.GetControllerOfNoCopy(live); {
	case controller == nil:
	case controller.UID == owner.UID && live.GetDeletionTimestamp() == nil:
		return nil
	case controller.UID == owner.UID:
		return fmt.Errorf("%w: %s %q is being deleted", ErrDeleting, limit.KindOf(live), live.GetName())
	case controller.Name == owner.Name && groupKind(controller) == groupKind(owner): // The garbage collector deletes its children.
		return fmt.Errorf("%w: %s %q is controlled by a deleted %s of this name and waits for garbage collection",
			ErrDeleting, limit.KindOf(live), live.GetName(), controller.Kind)
	default:
		held = "is controlled by " + controller.Kind + "/" + controller.Name
	}
	return fmt.Errorf("%s %q %w and %s: it is not changed; delete or rename it, or give this object another name",
		limit.KindOf(live), live.GetName(), ErrNameConflict, held)
}

func groupKind(reference *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
}

// ErrOwnerGone reports that an object which is still in the cache was deleted, or replaced by
// another object of its name. Nothing is written for it, and nothing is retried: the watch event
// of the deletion follows.
var ErrOwnerGone = errors.New("the object has been deleted")

// ErrStale reports that there is a newer generation of an owner than the one in the informer
// cache. Its children are not written; the reconcile is retried until the cache is up to date.
var ErrStale = errors.New("the informer cache still has generation")

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
	described := fmt.Errorf("%s %s %q: %w", doing, limit.KindOf(obj), obj.GetName(), err)
	_, lasting := errors.AsType[*limit.LastingError](err)
	if !lasting && (isTransient(err) || apierrors.IsNotFound(err) && doing != "creating") {
		return described
	}
	return &RefusedError{described}
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
	if err == nil {
		return nil, nil
	}
	var (
		invalid   *rules.InvalidSpecError
		refused   *RefusedError
		contested *limit.ContestedError
		readiness status.Readiness
	)
	switch {
	case errors.As(err, &invalid):
		readiness, err = status.NewStalled(status.ReasonInvalidSpec, invalid.Error()), nil
	case errors.Is(err, ErrNameConflict):
		readiness, err = status.NewStalled(status.ReasonNameConflict, err.Error()), nil
	case errors.Is(err, ErrAutoscaled):
		readiness, err = status.NewStalled(status.ReasonConflict, err.Error()), nil
	case errors.Is(err, ErrFrozen):
		readiness, err = status.NewReconciling(status.ReasonFrozen, err.Error()), nil
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
