// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxErrors is how many errors an answer or a status has.
const maxErrors = 200

// First returns the first errors of a list, and if there are many, one more that says
// how many are left out. To write a list as one text takes memory in proportion to the
// square of its length: two thousand misspelt fields took two gigabytes.
func First(errs field.ErrorList) field.ErrorList {
	if len(errs) <= maxErrors {
		return errs
	}
	return append(errs[:maxErrors:maxErrors], &field.Error{
		Type: field.ErrorTypeTooMany, Field: "errors", BadValue: len(errs),
		Detail: fmt.Sprintf("%d more are left out: correct these first", len(errs)-maxErrors),
	})
}
