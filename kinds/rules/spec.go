// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// InvalidSpecError reports a spec that leaves open what the children of the object have to
// be, so that nothing is written for it. To reconcile it again is of no use before the
// spec is changed, which is an event.
type InvalidSpecError struct{ Err error }

func (e *InvalidSpecError) Error() string { return e.Err.Error() }

func (e *InvalidSpecError) Unwrap() error { return e.Err }

// FormatErrors joins errors for the message of a condition: the first 20 of them, and the
// number of the others.
func FormatErrors(errs field.ErrorList) string {
	const most = 20
	parts := make([]string, 0, min(len(errs), most)+1)
	for _, err := range errs[:min(len(errs), most)] {
		parts = append(parts, err.Error())
	}
	if more := len(errs) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}
