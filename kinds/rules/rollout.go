// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// Rollout validates spec.rollingUpdate: 1 to MaxRollingUpdate, as a number or as a string
// of up to 9 digits, or 1% to 100%. With zero, a rollout would never progress. A value
// that is not set is valid.
func Rollout(path *field.Path, v *intstr.IntOrString) field.ErrorList {
	return stepFrom(1, isStep, path, v, "must be a number from 1 to 1073741823, or a percentage from 1% to 100%")
}

// stepFrom refuses a number that is not from least to MaxRollingUpdate, and a string that is not valid.
func stepFrom(least int32, isValid func(string) bool, path *field.Path, v *intstr.IntOrString, rule string) field.ErrorList {
	switch {
	case modelv1.IsUnset(v):
	case v.Type == intstr.Int && (v.IntVal < least || v.IntVal > modelv1.MaxRollingUpdate):
		return field.ErrorList{field.Invalid(path, v.IntVal, rule)}
	case v.Type != intstr.Int && !isValid(v.StrVal):
		return field.ErrorList{field.Invalid(path, v.StrVal, rule)}
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

// Strategy validates the strategy of a Deployment, as Kubernetes does. Nil is valid.
func Strategy(path *field.Path, strategy *appsv1.DeploymentStrategy) field.ErrorList {
	if strategy == nil {
		return nil
	}
	steps := strategy.RollingUpdate
	switch strategy.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if steps != nil {
			return field.ErrorList{field.Forbidden(path.Child("rollingUpdate"),
				"may not be set if type is Recreate; remove rollingUpdate, or set type: RollingUpdate")}
		}
	case "", appsv1.RollingUpdateDeploymentStrategyType:
		return rollingUpdate(path.Child("rollingUpdate"), steps)
	default:
		return field.ErrorList{field.NotSupported(path.Child("type"), strategy.Type, strategyTypes)}
	}
	return nil
}

var strategyTypes = []appsv1.DeploymentStrategyType{appsv1.RollingUpdateDeploymentStrategyType, appsv1.RecreateDeploymentStrategyType}

func rollingUpdate(path *field.Path, steps *appsv1.RollingUpdateDeployment) field.ErrorList {
	if steps == nil {
		return nil
	}
	errs := strategyStep(path.Child("maxSurge"), steps.MaxSurge)
	errs = append(errs, strategyStep(path.Child("maxUnavailable"), steps.MaxUnavailable)...)
	if isZero(steps.MaxSurge) && isZero(steps.MaxUnavailable) {
		errs = append(errs, field.Invalid(path, field.OmitValueType{},
			"maxSurge and maxUnavailable may not both be 0, because no rollout could begin; set one of them to 1 or more"))
	}
	return errs
}

func strategyStep(path *field.Path, v *intstr.IntOrString) field.ErrorList {
	isPercentage := func(s string) bool { return s == "0%" || strings.HasSuffix(s, "%") && isStep(s) }
	return stepFrom(0, isPercentage, path, v, "must be a number of pods from 0 to 1073741823, or a percentage from 0% to 100%")
}

func isZero(v *intstr.IntOrString) bool {
	return v != nil && (v.Type == intstr.Int && v.IntVal == 0 || v.Type == intstr.String && v.StrVal == "0%")
}

// OneRollout refuses spec.rollingUpdate beside spec.strategy, except for its default, 25%,
// which the schema sets in every object.
func OneRollout(path *field.Path, v *intstr.IntOrString, strategy *appsv1.DeploymentStrategy) field.ErrorList {
	if strategy == nil || modelv1.IsUnset(v) || *v == intstr.FromString("25%") {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "may not be set together with spec.strategy; remove spec.rollingUpdate or spec.strategy")}
}

// NeedsSparePod reports whether a rollout of that many replicas has to create a pod before it
// may delete one. step is both maxSurge and maxUnavailable if there is no strategy. As in the
// Deployment controller, maxSurge is rounded up, maxUnavailable is rounded down, and if both
// are 0 then, one pod may be unavailable.
func NeedsSparePod(strategy *appsv1.DeploymentStrategy, step *intstr.IntOrString, replicas int32) bool {
	surge, unavailable := step, step
	if strategy != nil {
		if strategy.Type == appsv1.RecreateDeploymentStrategyType {
			return false
		}
		surge, unavailable = nil, nil
		if steps := strategy.RollingUpdate; steps != nil {
			surge, unavailable = steps.MaxSurge, steps.MaxUnavailable
		}
	}
	return pods(unavailable, replicas, false) == 0 && pods(surge, replicas, true) > 0
}

// pods returns the number of pods of a step, whose default is 25%, and 0 if it is invalid.
func pods(step *intstr.IntOrString, replicas int32, roundUp bool) int {
	v := intstr.FromString("25%")
	if !modelv1.IsUnset(step) {
		v = modelv1.IntOrPercent(*step)
	}
	n, _ := intstr.GetScaledValueFromIntOrPercent(&v, int(replicas), roundUp)
	return n
}

// MaxSeconds is the maximum of progressDeadlineSeconds and of terminationGracePeriodSeconds: a day.
const MaxSeconds = 86400

// Between refuses a number that is not from least to most. Nil is valid, because it has a default.
func Between[T int32 | int64](path *field.Path, value *T, least, most T) field.ErrorList {
	if value == nil || *value >= least && *value <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, validation.InclusiveRangeError(int(least), int(most)))}
}
