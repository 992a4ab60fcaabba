// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import "time"

const (
	// horizon is how far Next and Prev look, in seconds: forty years. The longest wait between two days that a
	// calendar can ask for is eight years (29 February across 2100), so beyond it there is nothing to be found.
	horizon = 40 * 366 * 24 * 60 * 60

	// earliest and latest bound the instants that slots can have, in Unix seconds: the years 1 to 9999, which is
	// what RFC 3339, and so the Kubernetes API, can write.
	earliest = -62135596800
	latest   = 253402300799
)

// Schedule is a parsed cron expression: the times of a clock on the wall, in no zone yet. It is a small immutable
// value; two schedules are == if they were written with the same meaning ("@daily" and "0 0 * * *"). The zero
// Schedule never fires.
type Schedule struct {
	minutes  uint64 // bits 0 to 59
	hours    uint32 // bits 0 to 23
	days     uint32 // bits 1 to 31
	months   uint16 // bits 1 to 12
	weekdays uint8  // bits 0 (Sunday) to 6

	// wild follows elapsed time, and the opposite, fixed, does not lose or repeat what it names; see the package's text.
	wild bool
	// either takes a day that the day of month or the day of week names; otherwise both must.
	either bool
}

// Next returns the first slot strictly after an instant, as a whole second in loc, where a nil loc is UTC. It
// reports false if there is none within forty years or before the year 10000, and for an instant outside of the
// years 1 to 9999. It looks at the calendar month by month and at the zone once for each change of its clocks on the
// way, so that even the longest wait costs microseconds.
func (s Schedule) Next(after time.Time, loc *time.Location) (time.Time, bool) {
	loc = orUTC(loc)
	from := after.Unix() + 1
	if from <= earliest || from > latest || s.months == 0 {
		return time.Time{}, false
	}
	for limit := min(from+horizon, latest); from <= limit; {
		p := s.periodAt(from, loc)
		p.end = min(p.end, limit+1)
		if slot, ok := s.first(p, from); ok {
			return time.Unix(slot, 0).In(loc), true
		}
		from = p.end
	}
	return time.Time{}, false
}

// Prev returns the latest slot at or before an instant, as a whole second in loc, where a nil loc is UTC. After a
// time away it finds the one slot to catch up with at the cost of a single Next, however many were missed. It
// reports false if there is none within forty years or since the year 1, and for an instant outside of the years 1
// to 9999.
func (s Schedule) Prev(at time.Time, loc *time.Location) (time.Time, bool) {
	loc = orUTC(loc)
	to := at.Unix()
	if to < earliest || to > latest || s.months == 0 {
		return time.Time{}, false
	}
	for limit := max(to-horizon, earliest); to >= limit; {
		p := s.periodAt(to, loc)
		slot, ok := s.last(p, to)
		if ok && slot >= limit {
			return time.Unix(slot, 0).In(loc), true
		}
		to = p.start - 1
	}
	return time.Time{}, false
}

// first returns the first slot of a period that is not before an instant.
func (s Schedule) first(p period, from int64) (int64, bool) {
	if from <= p.start && s.swallowedBy(p) {
		return p.start, true
	}
	wall := max(from+p.offset, p.resume())
	minute, ok := s.firstMinute(ceilMinute(wall), ceilMinute(p.end+p.offset))
	return minute*60 - p.offset, ok
}

// last returns the last slot of a period that is not after an instant of that period.
func (s Schedule) last(p period, to int64) (int64, bool) {
	minute, ok := s.lastMinute(floorMinute(to+p.offset), ceilMinute(p.resume()))
	if ok {
		return minute*60 - p.offset, true
	}
	return p.start, s.swallowedBy(p)
}

// swallowedBy reports whether the clock, put forward at the start of a period, jumped over a time of the schedule
// that is to be made up for there.
func (s Schedule) swallowedBy(p period) bool {
	gap := p.offset - p.before
	if gap <= 0 || gap >= correction {
		return false
	}
	_, ok := s.firstMinute(ceilMinute(p.start+p.before), ceilMinute(p.start+p.offset))
	return ok
}

func orUTC(loc *time.Location) *time.Location {
	if loc == nil {
		return time.UTC
	}
	return loc
}
