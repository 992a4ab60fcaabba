// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Envs is Env for a list that is bounded by MaxEnv: a longer one is refused as a
// whole, and not looked into.
func Envs(path *field.Path, envs []corev1.EnvVar) field.ErrorList {
	if len(envs) > MaxEnv {
		return field.ErrorList{field.TooMany(path, len(envs), MaxEnv)}
	}
	return Env(path, envs)
}
