// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Replicas refuses a number of pods that is not between 0 and most. Nil is valid, because
// it has a default.
func Replicas(path *field.Path, replicas *int32, most int32) field.ErrorList {
	switch {
	case replicas == nil:
		return nil
	case *replicas < 0:
		return field.ErrorList{field.Invalid(path, *replicas, "must be greater than or equal to 0")}
	case *replicas > most:
		return field.ErrorList{field.Invalid(path, *replicas, fmt.Sprintf("must be less than or equal to %d", most))}
	}
	return nil
}
