// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ErrOwnerGone reports that an object which is still in the cache was deleted, or replaced by
// another object of its name. No child is created for it, and nothing is retried: the watch
// event of the deletion follows.
var ErrOwnerGone = errors.New("the object has been deleted")

// ContestedError reports that another field manager modifies a field of a child as often as
// it is reverted, so that the number of repairs is limited.
type ContestedError struct {
	// Kind and Name are those of the child.
	Kind, Name string
	// Field is the path of the field.
	Field string
	// Manager is the other field manager, or empty if managedFields does not have it.
	Manager string
	// NextRepair is when the next repair is allowed.
	NextRepair time.Time
	// RetryAfter is the time until the next reconcile.
	RetryAfter time.Duration
}

func (e *ContestedError) Error() string {
	return fmt.Sprintf("%s %q: %s is modified repeatedly by %s; it is reverted at most 3 times a minute, next after %s; "+
		"stop the other manager, or remove the field from this object",
		e.Kind, e.Name, e.Field, describeManager(e.Manager), e.NextRepair.UTC().Truncate(time.Second).Format(time.RFC3339))
}

// describeManager returns a field manager as it is named in a message.
func describeManager(manager string) string {
	if manager == "" {
		return "another field manager"
	}
	return fmt.Sprintf("field manager %q", manager)
}

// Result returns the result of a reconcile for an error of Apply: the owner of a contested
// child is reconciled again after RetryAfter, a deleted owner is not, and any other error is
// retried with back-off.
func Result(err error) (reconcile.Result, error) {
	var contested *ContestedError
	switch {
	case errors.Is(err, ErrOwnerGone):
		return reconcile.Result{}, nil
	case errors.As(err, &contested):
		return reconcile.Result{RequeueAfter: contested.RetryAfter}, nil
	}
	return reconcile.Result{}, err
}
