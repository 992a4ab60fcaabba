// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// UnbuildableError says that a spec leaves open what its children should be, so that
// nothing is written until the spec is changed.
type UnbuildableError struct{ Err error }

func (e *UnbuildableError) Error() string { return e.Err.Error() }

func (e *UnbuildableError) Unwrap() error { return e.Err }

// Buildable returns an *UnbuildableError that describes the errors of a spec for which
// no children can be built, nil if the errors allow it.
func Buildable(errs field.ErrorList) error {
	if blocking := rules.Unbuildable(errs); len(blocking) > 0 {
		return &UnbuildableError{errors.New(status.Describe(blocking))}
	}
	return nil
}

// Judge is apply.Judge for errors of the builders as well: to try such a build again is
// of no use, a change of the spec is an event.
func Judge(err error) (*status.Verdict, error) {
	if unbuildable, ok := errors.AsType[*UnbuildableError](err); ok {
		verdict := status.Stuck(status.ReasonInvalidSpec, unbuildable.Error())
		return &verdict, nil
	}
	return apply.Judge(err)
}
