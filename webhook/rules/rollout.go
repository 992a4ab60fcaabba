// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const rolloutStep = "must be a number, 1 or more, or a percentage from 1% to 100%"

// IntOrPercent is the value as Kubernetes wants it, where every string is a
// percentage: the string "5" means the number 5. Anything else stays as it is.
func IntOrPercent(v intstr.IntOrString) intstr.IntOrString {
	if v.Type == intstr.Int {
		return v
	}
	if number, ok := decimal(v.StrVal, 9); ok {
		return intstr.FromInt32(number)
	}
	return v
}

// Rollout says whether a value can be the step of a rolling update: 1 or more, as
// a number or as a string of up to 9 digits, or 1% to 100%. Zero would stop a
// rollout for good. Nil is not judged.
func Rollout(path *field.Path, v *intstr.IntOrString) field.ErrorList {
	switch {
	case v == nil:
		return nil
	case v.Type == intstr.Int:
		if v.IntVal < 1 {
			return field.ErrorList{field.Invalid(path, v.IntVal, rolloutStep)}
		}
	case !isStep(v.StrVal):
		return field.ErrorList{field.Invalid(path, v.StrVal, rolloutStep)}
	}
	return nil
}

func isStep(s string) bool {
	if percent, ok := strings.CutSuffix(s, "%"); ok {
		number, ok := decimal(percent, 3)
		return ok && number <= 100
	}
	_, ok := decimal(s, 9)
	return ok
}

// decimal reads a positive number of at most so many digits, 9 or less, that has
// neither sign nor leading zeros.
func decimal(s string, digits int) (number int32, ok bool) {
	if s == "" || len(s) > digits || s[0] == '0' {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		number = number*10 + int32(s[i]-'0')
	}
	return number, true
}

// RolloutWarning is a sentence on a rollout that may leave no pod to serve, and ""
// on every other: a step of all replicas takes all of them away at once.
func RolloutWarning(path *field.Path, v *intstr.IntOrString, replicas *int32) string {
	if v == nil || replicas == nil || *replicas == 0 {
		return ""
	}
	step := IntOrPercent(*v)
	if step.StrVal != "100%" && (step.Type != intstr.Int || step.IntVal < *replicas) {
		return ""
	}
	return path.String() + ": " + step.String() + " of " + strconv.Itoa(int(*replicas)) +
		" replicas lets a rollout take all pods away at once"
}
