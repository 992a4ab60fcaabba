// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxReplicas is the most pods that an object may ask for, and MaxStep the largest step
// of a rolling update in pods. The Deployment controller adds the step to the replicas
// in an int32 (NewRSNewReplicas in k8s.io/kubernetes/pkg/controller/deployment/util), and
// a step of 100% is as many pods again: twice 1<<30 - 1 is less than 1<<31 - 1.
const (
	MaxReplicas = int32(1<<30 - 1)
	MaxStep     = MaxReplicas
)

const rolloutStep = "must be a number, 1 to 1073741823, or a percentage from 1% to 100%"

// Unset says whether an optional number or string is not set: an empty string is not.
func Unset(v *intstr.IntOrString) bool {
	return v == nil || v.Type == intstr.String && v.StrVal == ""
}

// IntOrPercent is the value as Kubernetes wants it, where every string is a
// percentage: the string "5" means the number 5. A number above MaxStep, which was
// stored before that was refused, becomes MaxStep: no rollout can tell the difference.
// Anything else stays as it is.
func IntOrPercent(v intstr.IntOrString) intstr.IntOrString {
	if v.Type == intstr.Int {
		return intstr.FromInt32(min(v.IntVal, MaxStep))
	}
	if number, ok := decimal(v.StrVal, 9); ok {
		return intstr.FromInt32(number)
	}
	return v
}

// Rollout says whether a value can be the step of a rolling update: 1 to MaxStep, as
// a number or as a string of up to 9 digits, or 1% to 100%. Zero would stop a
// rollout for good. One that is Unset is not judged.
func Rollout(path *field.Path, v *intstr.IntOrString) field.ErrorList {
	switch {
	case Unset(v):
		return nil
	case v.Type == intstr.Int:
		if v.IntVal < 1 || v.IntVal > MaxStep {
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
	if Unset(v) || replicas == nil || *replicas == 0 {
		return ""
	}
	step := IntOrPercent(*v)
	if step.StrVal != "100%" && (step.Type != intstr.Int || step.IntVal < *replicas) {
		return ""
	}
	return path.String() + ": " + step.String() + " of " + strconv.Itoa(int(*replicas)) +
		" replicas lets a rollout take all pods away at once"
}
