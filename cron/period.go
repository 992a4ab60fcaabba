// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import (
	"math"
	"time"
)

const (
	// correction is the change of the clock, in seconds, from which on it is a correction of the calendar and no
	// daylight saving: three hours, as in cronie's cron(8).
	correction = 3 * 60 * 60

	secondsPerDay = 24 * 60 * 60

	// always and never stand for the bounds of a period that has none, with room left for arithmetic.
	always = math.MinInt64 / 2
	never  = math.MaxInt64 / 2
)

// period is a stretch of time in which a location keeps one offset. Times are Unix seconds, offsets are seconds
// east of UTC. Before is the offset that was in force until start, or offset itself if nothing is to be made of the
// change, because nothing was before or because the schedule is wild.
type period struct {
	start, end     int64
	offset, before int64
}

// periodAt returns the period of a location that holds an instant. Only a fixed schedule asks what was before: for
// it the period also starts at a change of the offset for sure, and not where merely the name of the zone changed.
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

// zoneAt returns the stretch around an instant for which the time package vouches. It may be shorter than the
// offset lasts, because after the last change in a zone's table the package cuts a stretch at the turn of the year.
// That year has 365 days, and before 1970 it is a day late, so that an instant can lie outside of its own stretch;
// then it gets its day in UTC, at the turn of which the package's rules change anyway.
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

// resume returns the time on the wall from which a schedule holds in a period. It is the time at which the period
// starts, or, if the clock was put back to get there, the one that it showed before: what lies between has been.
func (p period) resume() int64 {
	repeat := p.before - p.offset
	if repeat <= 0 || repeat >= correction {
		return p.start + p.offset
	}
	return p.start + p.before
}
