// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
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

const rolloutStep = "must be a number from 1 to 1073741823, or a percentage from 1% to 100%"

// Rollout validates spec.rollingUpdate: 1 to MaxRollingUpdate, as a number or as a string
// of up to 9 digits, or 1% to 100%. With zero, a rollout would never progress. A value
// that is not set is valid.
func Rollout(path *field.Path, v *intstr.IntOrString) field.ErrorList {
	switch {
	case modelv1.IsUnset(v):
		return nil
	case v.Type == intstr.Int:
		if v.IntVal < 1 || v.IntVal > modelv1.MaxRollingUpdate {
			return field.ErrorList{field.Invalid(path, v.IntVal, rolloutStep)}
		}
	case !isStep(v.StrVal):
		return field.ErrorList{field.Invalid(path, v.StrVal, rolloutStep)}
	}
	return nil
}

func isStep(s string) bool {
	number, percent := strings.CutSuffix(s, "%")
	step := modelv1.IntOrPercent(intstr.FromString(number))
	return step.Type == intstr.Int && (!percent || step.IntVal <= 100)
}

// RolloutWarning returns a warning if a rollout may make all pods unavailable at once,
// and "" otherwise.
func RolloutWarning(path *field.Path, v *intstr.IntOrString, replicas *int32) string {
	if modelv1.IsUnset(v) || replicas == nil || *replicas == 0 {
		return ""
	}
	step := modelv1.IntOrPercent(*v)
	if step.StrVal != "100%" && (step.Type != intstr.Int || step.IntVal < *replicas) {
		return ""
	}
	return path.String() + ": " + step.String() + " of " + strconv.Itoa(int(*replicas)) +
		" replicas allows a rollout to make all pods unavailable at once"
}
