// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxErrors is the maximum number of errors in a response or a status.
const maxErrors = 200

// First returns the first errors of a list, and if there are more than maxErrors, one
// error that counts the others. Formatting a list as one text takes memory in proportion to
// the square of its length: two thousand misspelt fields took two gigabytes.
func First(errs field.ErrorList) field.ErrorList {
	if len(errs) <= maxErrors {
		return errs
	}
	return append(errs[:maxErrors:maxErrors], &field.Error{
		Type: field.ErrorTypeTooMany, Field: "errors", BadValue: len(errs),
		Detail: fmt.Sprintf("%d more errors are omitted", len(errs)-maxErrors),
	})
}

// TooLarge returns the error for a field with too many bytes. The size is the value of the
// error, so that ratcheting validation can tell an update that makes a stored field larger
// from one that does not.
func TooLarge(path *field.Path, size, most int, wayOut string) *field.Error {
	err := field.TooLong(path, "", most)
	err.BadValue = size
	err.Detail = fmt.Sprintf("may not be more than %d bytes; %s", most, wayOut)
	return err
}

// originUnbuildable marks the errors of a spec from which no children can be built: a pod
// template that cannot be decoded, two values for one field, an image that no container
// runtime can parse. The controller writes nothing for such a spec.
//
// With all other errors it applies the spec, and leaves the decision to the API server's
// own validation of the children. So a new rule must not have the mark unless objects that
// violate it could never be built: it would stop the scaling and the repair of stored
// objects that have worked so far.
const originUnbuildable = "unbuildable"

// MarkUnbuildable marks errors as those of a spec from which no children can be built.
func MarkUnbuildable(errs ...*field.Error) field.ErrorList {
	for _, err := range errs {
		_ = err.WithOrigin(originUnbuildable)
	}
	return errs
}

// Unbuildable returns the errors that are marked by MarkUnbuildable.
func Unbuildable(errs field.ErrorList) field.ErrorList {
	var out field.ErrorList
	for _, err := range errs {
		if err.Origin == originUnbuildable {
			out = append(out, err)
		}
	}
	return out
}
