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

// ConflictError reports that an object with the name of a child exists which the owner does
// not control. Such an object is never adopted, changed or deleted.
type ConflictError struct {
	// Kind and Name are those of the existing object.
	Kind, Name string
	// Controller is "Kind/name" of its controller, or empty if it has none.
	Controller string
}

func (e *ConflictError) Error() string {
	controller := "has no controller"
	if e.Controller != "" {
		controller = "is controlled by " + e.Controller
	}
	return fmt.Sprintf("%s %q already exists and %s: it is not changed; delete or rename it, or give this object another name",
		e.Kind, e.Name, controller)
}

// checkOwner returns an error unless the owner of the desired child controls live.
func checkOwner(live, desired client.Object) error {
	owner := metav1.GetControllerOfNoCopy(desired)
	switch controller := metav1.GetControllerOf(live); {
	case controller == nil:
		return &ConflictError{Kind: kindOf(live), Name: live.GetName()}
	case controller.UID == owner.UID && live.GetDeletionTimestamp() == nil:
		return nil
	case controller.UID == owner.UID:
		return fmt.Errorf("%w: %s %q is being deleted", ErrDeleting, kindOf(live), live.GetName())
	case controller.Name == owner.Name && groupKind(controller) == groupKind(owner): // The garbage collector deletes its children.
		return fmt.Errorf("%w: %s %q is controlled by a deleted %s of this name and waits for garbage collection",
			ErrDeleting, kindOf(live), live.GetName(), controller.Kind)
	default:
		return &ConflictError{Kind: kindOf(live), Name: live.GetName(), Controller: controller.Kind + "/" + controller.Name}
	}
}

func groupKind(reference *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
}

// ErrOwnerGone reports that an object which is still in the cache was deleted, or replaced by
// another object of its name. Nothing is written for it, and nothing is retried: the watch event
// of the deletion follows.
var ErrOwnerGone = errors.New("the object has been deleted")

// StaleError reports that there is a newer generation of an owner than the one in the informer
// cache. Its children are not written; the reconcile is retried until the cache is up to date.
type StaleError struct {
	// Kind and Name are those of the owner.
	Kind, Name string
	// Newer is the generation that the API server has; Cached is the one in the cache.
	Newer, Cached int64
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("the children of %s %q are not written: it has generation %d, but the informer cache still has generation %d",
		e.Kind, e.Name, e.Newer, e.Cached)
}

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

// Refused wraps the error of a write. An error that a retry may resolve is not a refusal, unless it
// lasts: a conflict, a timeout, an overloaded API server, a child that is not in the cache yet, or
// one that was deleted meanwhile.
func Refused(doing string, obj client.Object, err error) error {
	if err == nil {
		return nil
	}
	_, lasting := errors.AsType[*limit.LastingError](err)
	if !lasting && (isTransient(err) || apierrors.IsNotFound(err) && doing != "creating") {
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
	switch code := response.Status().Code; code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return response.Status().Reason != ""
	default:
		return response.Status().Reason != "" || code >= http.StatusBadRequest
	}
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
		conflict  *ConflictError
		refused   *RefusedError
		contested *limit.ContestedError
		readiness status.Readiness
	)
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
