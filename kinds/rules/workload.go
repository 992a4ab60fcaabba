// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// Rollout validates spec.rollingUpdate: 1 to MaxRollingUpdate, as a number or as a string
// of up to 9 digits, or 1% to 100%. With zero, a rollout would never progress. A value
// that is not set is valid.
func Rollout(path *field.Path, v *intstr.IntOrString) field.ErrorList {
	return stepFrom(1, isStep, path, v, "must be a number from 1 to 1073741823, or a percentage from 1% to 100%")
}

// stepFrom refuses a number that is not from least to MaxRollingUpdate, and a string that is not
// valid.
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
	return MarkIneffective(field.Forbidden(path, "may not be set together with spec.strategy; remove spec.rollingUpdate or spec.strategy"))
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

// The timing of the default startup probe: a container may take 30 minutes to start. A longer
// period would delay the readiness of those that start at once.
const (
	StartupPeriodSeconds    = 2
	StartupFailureThreshold = 900
)

// ProbeSeconds returns the time in seconds after the start of a container at which a probe that
// always fails has failed for good, with Kubernetes' defaults for what is not set: a period of
// 10 seconds and 3 failures.
func ProbeSeconds(probe *corev1.Probe) int64 {
	period, failures := int64(probe.PeriodSeconds), int64(probe.FailureThreshold)
	return int64(probe.InitialDelaySeconds) + cmp.Or(period, 10)*cmp.Or(failures, 3)
}

// slowStart is the time in seconds after the start of a container before which a liveness
// probe should not restart it.
const slowStart = 60

// quickLiveness says that a liveness probe can restart a container within 60 seconds of its start, ""
// if it cannot: with a startup probe it does not run before that one has succeeded.
func quickLiveness(liveness, startup *corev1.Probe) string {
	if liveness == nil || startup != nil || liveness.ProbeHandler == (corev1.ProbeHandler{}) || ProbeSeconds(liveness) > slowStart {
		return ""
	}
	return "restarts a container that is not live " + strconv.FormatInt(ProbeSeconds(liveness), 10) + " s after its start"
}

// LivenessWarning returns a warning if a liveness probe can restart a container within 60
// seconds of its start, and the line that prevents it. Both are empty if there is a startup
// probe. path is that of livenessProbe.
func LivenessWarning(path string, liveness, startup *corev1.Probe) (warning, line string) {
	quick := quickLiveness(liveness, startup)
	if quick == "" {
		return "", ""
	}
	return path + ": " + quick + "; for 30 minutes, add this to spec:", startupLine(&liveness.ProbeHandler)
}

// startupLine returns the line that adds a startup probe with an action, as JSON, which is YAML
// as well. An action for which a warning has no room, of 120 characters, is described.
func startupLine(action *corev1.ProbeHandler) string {
	const most = 120
	text, err := json.Marshal(action)
	if err == nil {
		line := "startupProbe: " + string(text[:len(text)-1]) + `,"periodSeconds":2,"failureThreshold":900}`
		if len(line) <= most {
			return line
		}
	}
	return "spec.startupProbe: set the action of livenessProbe, periodSeconds: 2 and failureThreshold: 900"
}

// Device returns the name of an extended resource that a container requires, the first one in
// alphabetical order, or "device" if it has claims only. It returns "" if it requires none.
func Device(r *corev1.ResourceRequirements) string {
	if r == nil {
		return ""
	}
	device := ""
	for name, limit := range r.Limits {
		if !helper.IsNativeResource(name) && limit.Sign() > 0 && (device == "" || string(name) < device) {
			device = string(name)
		}
	}
	if device == "" && len(r.Claims) > 0 {
		return "device"
	}
	return device
}

// The volume of spec.sharedMemory.
const (
	// SharedMemoryVolume is the name of the volume.
	SharedMemoryVolume = "shared-memory"
	// SharedMemoryPath is where the main container mounts it.
	SharedMemoryPath = "/dev/shm"
)

// OwnVolume is a volume that a field of an object defines, other than its pod template.
type OwnVolume struct {
	Volume corev1.Volume
	// Mount is the main container's mount of the volume.
	Mount corev1.VolumeMount
	// Field is the path of the object's field.
	Field string
}

// LacksSharedMemory returns the name of the extended resource of which a container requires two or
// more while it mounts nothing at SharedMemoryPath, and "" otherwise.
func LacksSharedMemory(r *corev1.ResourceRequirements, mounts []corev1.VolumeMount) string {
	device := Device(r)
	if device == "" || slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == SharedMemoryPath }) {
		return ""
	}
	if several := r.Limits[corev1.ResourceName(device)]; several.CmpInt64(1) <= 0 {
		return ""
	}
	return device
}

// SharedMemory returns the volume of spec.sharedMemory, none if size is nil.
func SharedMemory(size *resource.Quantity) []OwnVolume {
	if size == nil {
		return nil
	}
	memory := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: size}
	return []OwnVolume{{
		Volume: corev1.Volume{Name: SharedMemoryVolume, VolumeSource: corev1.VolumeSource{EmptyDir: memory}},
		Mount:  corev1.VolumeMount{Name: SharedMemoryVolume, MountPath: SharedMemoryPath},
		Field:  "spec.sharedMemory",
	}}
}

// SharedMemorySize refuses a size that is not greater than 0, and one that is greater than
// the memory limit of the main container: what is stored in the volume counts against the
// limit, so that a process which filled the volume would be killed. Nil is valid, and so is
// any size without a limit.
func SharedMemorySize(path *field.Path, size *resource.Quantity, r *corev1.ResourceRequirements) field.ErrorList {
	if size == nil {
		return nil
	}
	if size.Sign() <= 0 {
		return field.ErrorList{field.Invalid(path, size.String(), "must be greater than 0")}
	}
	if r == nil {
		return nil
	}
	limit, ok := r.Limits[corev1.ResourceMemory]
	if !ok || limit.Sign() <= 0 || size.Cmp(limit) <= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, size.String(), "must be less than or equal to the memory limit of "+limit.String()+
		" of the main container, against which it counts; decrease it, or increase the limit")}
}
