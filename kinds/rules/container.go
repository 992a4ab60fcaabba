// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxWords is the maximum number of items of command, and of args. Together with MaxEnv
	// environment variables they are within MaxVariables.
	MaxWords = 1024
	// MaxPullSecrets is the maximum number of imagePullSecrets.
	MaxPullSecrets = 16
	// MaxSeconds is the maximum of progressDeadlineSeconds and of
	// terminationGracePeriodSeconds: a day.
	MaxSeconds = 86400
)

// Words refuses a command, or args, of more than MaxWords items.
func Words(path *field.Path, words []string) field.ErrorList {
	if len(words) > MaxWords {
		return field.ErrorList{field.TooMany(path, len(words), MaxWords)}
	}
	return nil
}

var pullPolicies = []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}

// PullPolicy refuses an imagePullPolicy that Kubernetes does not know. An empty one is valid.
func PullPolicy(path *field.Path, policy corev1.PullPolicy) field.ErrorList {
	if policy == "" || slices.Contains(pullPolicies, policy) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, policy, pullPolicies)}
}

// PullSecrets refuses names that no Secret can have, and repeated names, which server-side
// apply refuses. A list of more than MaxPullSecrets is refused as a whole.
func PullSecrets(path *field.Path, list []corev1.LocalObjectReference) field.ErrorList {
	if len(list) > MaxPullSecrets {
		return field.ErrorList{field.TooMany(path, len(list), MaxPullSecrets)}
	}
	var errs field.ErrorList
	for i := range list {
		errs = append(errs, objectRef(path.Index(i), list[i].Name, false)...)
	}
	return append(errs, Unique(path, "name", list, func(s *corev1.LocalObjectReference) string { return s.Name })...)
}

// Seconds refuses a time in seconds that is not from least to MaxSeconds. Nil is valid.
func Seconds[T int32 | int64](path *field.Path, seconds *T, least T) field.ErrorList {
	if seconds == nil || *seconds >= least && *seconds <= MaxSeconds {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *seconds, fmt.Sprintf("must be from %d to %d", least, MaxSeconds))}
}
