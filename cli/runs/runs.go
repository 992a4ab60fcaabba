// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runs lists the runs of schedules, also of all that objects have, and says which of them a
// change of the clocks concerns.
package runs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelbox-operator/modelbox-operator/cron"
)

// note describes the changes of the clocks between two runs, and those at the second.
func note(schedule cron.Schedule, before, run time.Time) string {
	var notes []string
	for _, change := range changes(before, run) {
		notes = append(notes, change.String())
		if change.at.Equal(run) {
			notes = append(notes, skipped(schedule, change))
		}
	}
	notes = append(notes, repeated(schedule, run))
	return strings.Join(slices.DeleteFunc(notes, func(text string) bool { return text == "" }), "; ")
}

// change is a change of a zone's offset.
type change struct {
	at       time.Time
	from, to int // The offsets before and after it, in seconds east of UTC.
}

// maxChanges bounds the changes that are listed: the runs may be years apart.
const maxChanges = 4

// changes returns the first changes of the offset after one instant, up to and at another.
func changes(after, until time.Time) []change {
	var out []change
	for at := after; len(out) < maxChanges; {
		_, end := at.ZoneBounds()
		if !end.IsZero() && !end.After(at) {
			end = at.Add(24 * time.Hour) // After 2037, ZoneBounds returns the last day of a leap year for all of that day.
		}
		if end.IsZero() || end.After(until) {
			break
		}
		if c := changeAt(end); c.from != c.to {
			out = append(out, c)
		}
		at = end
	}
	return out
}

func changeAt(at time.Time) change {
	_, from := at.Add(-time.Second).Zone()
	_, to := at.Zone()
	return change{at, from, to}
}

// by returns by how much the clocks go forward.
func (c change) by() time.Duration { return time.Duration(c.to-c.from) * time.Second }

func (c change) String() string {
	before := c.at.Add(-time.Second).Add(time.Second).In(time.FixedZone("", c.from))
	direction, by := "forward", c.by()
	if by < 0 {
		direction, by = "back", -by
	}
	return fmt.Sprintf("clocks go %s %s at %s", direction, short(by), before.Format("2006-01-02 15:04"))
}

// short returns a duration without its zeros: 1h, 30m, 1h30m.
func short(d time.Duration) string {
	text := strings.TrimSuffix(d.String(), "0s")
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// skipped says of a run at a change that its local time does not exist on that day.
func skipped(schedule cron.Schedule, c change) string {
	if c.by() <= 0 {
		return ""
	}
	old, now := time.FixedZone("", c.from), time.FixedZone("", c.to)
	if at, ok := schedule.Next(c.at.Add(-time.Second), now); ok && at.Equal(c.at) {
		return "" // The run has a local time of the schedule.
	}
	nominal, ok := schedule.Next(c.at.Add(-time.Second), old)
	if !ok || !nominal.Before(c.at.Add(c.by())) {
		return ""
	}
	return fmt.Sprintf("%s does not exist on this day, so it runs right after the change", nominal.In(old).Format("15:04"))
}

// repeated says of a run that its local time comes twice on that day.
func repeated(schedule cron.Schedule, run time.Time) string {
	start, end := run.ZoneBounds()
	if !end.IsZero() {
		if c := changeAt(end); c.by() < 0 && end.Sub(run) <= -c.by() {
			return twice(schedule, run, run.Add(-c.by()), "first")
		}
	}
	if !start.IsZero() {
		if c := changeAt(start); c.by() < 0 && run.Sub(start) < -c.by() {
			return twice(schedule, run, run.Add(c.by()), "second")
		}
	}
	return ""
}

// twice says which of two instants of one local time a run is, and whether there is a run at
// the other one.
func twice(schedule cron.Schedule, run, other time.Time, which string) string {
	at, ok := schedule.Next(other.Add(-time.Second), run.Location())
	if ok && at.Equal(other) {
		return fmt.Sprintf("%s comes twice on this day, and this is the %s of two runs", run.Format("15:04"), which)
	}
	return fmt.Sprintf("%s comes twice on this day, and it runs the %s time only", run.Format("15:04"), which)
}
