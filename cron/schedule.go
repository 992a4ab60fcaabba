// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import "time"

const (
	// horizon is how far Next and Prev search, in seconds: forty years. The longest time between
	// two days of a schedule is eight years (29 February across 2100), so there is nothing to find
	// beyond it.
	horizon = 40 * 366 * 24 * 60 * 60

	// earliest and latest are the bounds of scheduled times, in Unix seconds: the years 1 to 9999,
	// which RFC 3339, and so the Kubernetes API, can express.
	earliest = -62135596800
	latest   = 253402300799
)

// Schedule is a parsed cron expression, without a time zone. It is a small immutable value; two
// schedules are == if their expressions have the same meaning ("@daily" and "0 0 * * *"). The zero
// Schedule never fires.
type Schedule struct {
	minutes  uint64 // bits 0 to 59
	hours    uint32 // bits 0 to 23
	days     uint32 // bits 1 to 31
	months   uint16 // bits 1 to 12
	weekdays uint8  // bits 0 (Sunday) to 6

	// wild is true for a wildcard schedule and false for a fixed one; see the package's
	// documentation.
	wild bool
	// either is true if a day matches by its day of month or its day of week; otherwise both must
	// match.
	either bool
}

// Next returns the first scheduled time strictly after an instant, as a whole second in loc. It
// returns false if there is none within forty years or before the year 10000, and for an instant
// outside of the years 1 to 9999. It steps over months and over the zone's changes of the offset,
// so that the longest search takes only microseconds.
func (s Schedule) Next(after time.Time, loc *time.Location) (time.Time, bool) {
	from := after.Unix() + 1
	if from <= earliest || from > latest {
		return time.Time{}, false
	}
	slot, ok := s.between(from, min(from+horizon, latest), loc)
	return timeOf(slot, ok, loc)
}

// Prev returns the latest scheduled time at or before an instant, as a whole second in loc. It
// searches ever longer spans and then halves the last one, so after a downtime it finds the latest
// missed time without counting the others. It returns false if there is none within forty years or
// since the year 1, and for an instant outside of the years 1 to 9999.
func (s Schedule) Prev(at time.Time, loc *time.Location) (time.Time, bool) {
	to := at.Unix()
	if to < earliest || to > latest {
		return time.Time{}, false
	}
	start, end, limit := to, to, max(to-horizon, earliest)
	slot, ok := s.between(start, end, loc)
	for !ok && start > limit {
		end, start = start-1, max(3*start-2*to-60, limit)
		slot, ok = s.between(start, end, loc)
	}
	for ok && slot < end { // The latest slot is from slot to end.
		middle := end - (end-slot)/2
		if later, found := s.between(middle, end, loc); found {
			slot = later
		} else {
			end = middle - 1
		}
	}
	return timeOf(slot, ok, loc)
}

func timeOf(slot int64, ok bool, loc *time.Location) (time.Time, bool) {
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(slot, 0).In(loc), true
}

// between returns the first slot that is neither before from nor after to.
func (s Schedule) between(from, to int64, loc *time.Location) (int64, bool) {
	for from <= to {
		p := s.periodAt(from, loc)
		p.end = min(p.end, to+1)
		if slot, ok := s.first(p, from); ok {
			return slot, true
		}
		from = p.end
	}
	return 0, false
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

// swallowedBy reports whether the clocks were set forward at the start of a period over a time of
// the schedule, so that the schedule runs at the start of the period instead.
func (s Schedule) swallowedBy(p period) bool {
	gap := p.offset - p.before
	if gap <= 0 || gap >= correction {
		return false
	}
	_, ok := s.firstMinute(ceilMinute(p.start+p.before), ceilMinute(p.start+p.offset))
	return ok
}
