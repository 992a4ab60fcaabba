// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import "k8s.io/apimachinery/pkg/util/validation/field"

// originUnbuildable marks the errors of a spec that does not say what its children
// should be: a pod template that cannot be decoded, two values for one field, an image
// that no container runtime can read. The controller writes nothing for such a spec.
//
// With all other errors it writes what the spec says, and leaves the decision to the
// API server's own validation of the children. So a new rule must not have the mark
// unless objects that break it could never be built: it would stop the scaling and the
// repair of stored objects that have worked so far.
const originUnbuildable = "unbuildable"

func unbuildable(errs ...*field.Error) field.ErrorList {
	for _, err := range errs {
		_ = err.WithOrigin(originUnbuildable)
	}
	return errs
}

// Ambiguous is an error for two fields of a spec that contradict each other, so that
// no child can follow both.
func Ambiguous(err *field.Error) *field.Error { return err.WithOrigin(originUnbuildable) }

// Unbuildable are those of the errors for which no children can be built.
func Unbuildable(errs field.ErrorList) field.ErrorList {
	var out field.ErrorList
	for _, err := range errs {
		if err.Origin == originUnbuildable {
			out = append(out, err)
		}
	}
	return out
}
