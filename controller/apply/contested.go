// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ErrOwnerGone says that an object was deleted, or replaced by another of its name,
// before the cache showed it. Nothing is created for it, and there is nothing to retry:
// the watch reports the deletion.
var ErrOwnerGone = errors.New("the object has been deleted")

// ContestedError says that another field manager changes a field of a child again as
// often as it is repaired. Repairs are limited then.
type ContestedError struct {
	// Kind and Name are those of the child.
	Kind, Name string
	// Field is the path of the field.
	Field string
	// Manager is the other field manager, or empty if managedFields do not tell.
	Manager string
	// Due is when the next repair is allowed.
	Due time.Time
	// RetryAfter is when to reconcile next.
	RetryAfter time.Duration
}

func (e *ContestedError) Error() string {
	return fmt.Sprintf("%s %q: %s is changed again and again by %s; it is repaired at most 3 times a minute, next after %s; "+
		"stop the other manager, or remove the field from this object",
		e.Kind, e.Name, e.Field, named(e.Manager), e.Due.UTC().Truncate(time.Second).Format(time.RFC3339))
}

// named is a field manager in a sentence.
func named(manager string) string {
	if manager == "" {
		return "another field manager"
	}
	return fmt.Sprintf("field manager %q", manager)
}

// Result is what a reconcile returns for an error of Children: a contested child is
// looked at again when its next repair is due, a deleted owner never, and any other error
// is retried with back-off.
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
