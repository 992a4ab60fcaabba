// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import "k8s.io/apimachinery/pkg/util/validation/field"

// Replicas says whether a number of pods is 0 or more. A missing one has a
// default and is not judged.
func Replicas(path *field.Path, replicas *int32) field.ErrorList {
	if replicas == nil || *replicas >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *replicas, "must be 0 or more")}
}
