// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import (
	"math"
	"time"
)

const (
	// correction is the minimum change of the offset, in seconds, that is a correction of the calendar and not
	// daylight saving time: three hours, as in cronie's cron(8).
	correction = 3 * 60 * 60

	secondsPerDay = 24 * 60 * 60

	// always and never are the bounds of a period without bounds. Arithmetic with them does not overflow.
	always = math.MinInt64 / 2
	never  = math.MaxInt64 / 2
)

// period is a period in which a location has one offset. Times are Unix seconds, offsets are seconds
// east of UTC. before is the offset before start. It is equal to offset if the change does not matter, because there is
// no earlier period or because the schedule is a wildcard schedule.
type period struct {
	start, end     int64
	offset, before int64
}

// periodAt returns the period of a location that contains an instant. Only a fixed schedule needs the offset before it:
// for such a schedule the period always starts at a change of the offset, and not where only the zone's abbreviation
// changed.
func (s Schedule) periodAt(at int64, loc *time.Location) period {
	p := zoneAt(at, loc)
	if s.wild {
		return p
	}
	for p.before == p.offset && p.start > earliest {
		earlier := zoneAt(p.start-1, loc)
		p.before = earlier.offset
		if p.before == p.offset {
			p.start = earlier.start
		}
	}
	return p
}

// zoneAt returns the period around an instant according to the time package. It may be shorter than the real period,
// because after the last change in a zone's table the package ends a period at the end of the year. It calculates with a
// year of 365 days, and before 1970 it is a day late, so that an instant may be outside of its own period. Then the
// result is the instant's day in UTC, at whose start the package's rules change anyway.
func zoneAt(at int64, loc *time.Location) period {
	t := time.Unix(at, 0).In(loc)
	_, offset := t.Zone()
	start, end := t.ZoneBounds()
	p := period{start: always, end: never, offset: int64(offset), before: int64(offset)}
	if !start.IsZero() {
		p.start = start.Unix()
	}
	if !end.IsZero() {
		p.end = end.Unix()
	}
	if day := at - floorMod(at, secondsPerDay); p.start > at || p.end <= at {
		p.start, p.end = min(p.start, day), max(p.end, day+secondsPerDay)
	}
	return p
}

// resume returns the local time from which on a schedule runs in a period. It is the local time at which the period
// starts, or, if the clocks were set back at the start, the local time before the change, because the times between
// have already been.
func (p period) resume() int64 {
	repeat := p.before - p.offset
	if repeat <= 0 || repeat >= correction {
		return p.start + p.offset
	}
	return p.start + p.before
}
