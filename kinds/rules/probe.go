// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"encoding/json"
	"strconv"

	corev1 "k8s.io/api/core/v1"
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
