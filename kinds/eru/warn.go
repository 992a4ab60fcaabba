// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"fmt"
	"strings"
	"time"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/cron"
)

const (
	// announcedRuns is the number of restarts in a warning.
	announcedRuns = 3

	// shortDeadline is about twice the time in seconds that it takes another replica of
	// the controller to become the leader.
	shortDeadline = 10
)

// Warn returns the next restarts of an Eru that has its defaults, in its own time zone,
// and warnings on what in it is deprecated or likely to be a mistake. Each has at most 120
// characters, for time zones with an offset of whole or half hours. An object with an invalid
// schedule gets no warning about its restarts.
func Warn(obj *mtsrev1.Eru, now time.Time) []string {
	var out []string
	if obj.Spec.DeprecatedDeploymentName != "" {
		out = append(out, fmt.Sprintf("%s: deprecated; use %s instead", deprecatedNamePath, deploymentNamePath))
	}
	return append(out, warnOfRestarts(obj, now)...)
}

func warnOfRestarts(obj *mtsrev1.Eru, now time.Time) []string {
	runs := nextRuns(&obj.Spec, now)
	if runs == "" {
		return nil
	}
	if !obj.Spec.Enabled {
		return []string{fmt.Sprintf("%s is false: it would run at %s", enabledPath, runs)}
	}
	out := []string{fmt.Sprintf("%s: the next restarts are at %s", schedulePath, runs)}
	if deadline := obj.Spec.StartingDeadlineSeconds; deadline != nil && *deadline < shortDeadline {
		out = append(out, fmt.Sprintf("%s: less than %d s, so a change of the controller's leader can miss a restart", deadlinePath, shortDeadline))
	}
	return out
}

// nextRuns returns the next scheduled times after an instant, "" if the schedule or the
// time zone is invalid.
func nextRuns(spec *mtsrev1.EruSpec, after time.Time) string {
	schedule, err := cron.Parse(spec.Schedule)
	zone, zoneErr := cron.LoadLocation(spec.TimeZone)
	if err != nil || zoneErr != nil {
		return ""
	}
	var runs []string
	for run, ok := schedule.Next(after, zone); ok && len(runs) < announcedRuns; run, ok = schedule.Next(run, zone) {
		runs = append(runs, run.Format(time.RFC3339))
	}
	return strings.Join(runs, ", ")
}
