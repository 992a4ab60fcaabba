// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"encoding/json"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper"
)

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

// LivenessWarning returns a warning if a liveness probe can restart a container within 60
// seconds of its start, and the line that prevents it. Both are empty if there is a startup
// probe, because the liveness probe does not run before that has succeeded. path is that of
// livenessProbe.
func LivenessWarning(path string, liveness, startup *corev1.Probe) (warning, line string) {
	if liveness == nil || startup != nil || liveness.ProbeHandler == (corev1.ProbeHandler{}) {
		return "", ""
	}
	seconds := ProbeSeconds(liveness)
	if seconds > slowStart {
		return "", ""
	}
	return path + ": restarts a container that is not live " + strconv.FormatInt(seconds, 10) +
		" s after its start; for 30 minutes, add this to spec:", startupLine(&liveness.ProbeHandler)
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
