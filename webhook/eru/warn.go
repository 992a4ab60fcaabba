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
	// announcedRuns is how many runs a warning names.
	announcedRuns = 3

	// shortDeadline is about how long it takes until another replica of the
	// controller acts when one goes away, twice over, in seconds.
	shortDeadline = 10
)

// Warn says when an Eru which has its defaults would restart its Deployment next,
// in its own time zone, and what in it is allowed and yet likely to surprise: one
// sentence each, of at most 120 characters for zones of whole and half hours. An
// object that Validate refuses gets none.
func Warn(obj *mtsrev1.Eru, now time.Time) []string {
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

// nextRuns lists the next runs after an instant, "" if the spec cannot be read.
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
