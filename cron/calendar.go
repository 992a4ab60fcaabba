// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import (
	"math"
	"math/bits"
	"time"
)

// This file handles the calendar without time zones: its minutes and days are in local time,
// counted from 1 January 1970 as if the offset from UTC had never changed.

const minutesPerDay = 24 * 60

// firstMinute returns the first minute of the schedule that is neither before from nor at or after
// end.
func (s Schedule) firstMinute(from, end int64) (int64, bool) {
	today := floorDiv(from, minutesPerDay)
	day := s.firstDay(today, floorDiv(end-1, minutesPerDay))
	clock, ok := s.clockFrom(int(from - today*minutesPerDay))
	if day == today && !ok {
		day = s.firstDay(today+1, floorDiv(end-1, minutesPerDay))
	}
	if day != today {
		clock, _ = s.clockFrom(0)
	}
	minute := day*minutesPerDay + clock
	return minute, minute < end
}

// clockFrom returns the first minute of a day that matches the schedule and is not before clock.
func (s Schedule) clockFrom(clock int) (int64, bool) {
	hour, minute := clock/60, clock%60
	if rest := s.minutes >> minute; rest != 0 && s.hours>>hour&1 == 1 {
		return int64(clock + bits.TrailingZeros64(rest)), true
	}
	rest := s.hours >> (hour + 1)
	if rest == 0 {
		return 0, false
	}
	hour += 1 + bits.TrailingZeros32(rest)
	return int64(hour*60 + bits.TrailingZeros64(s.minutes)), true
}

// firstDay returns the first day of the schedule that is not before from, or a day after end.
func (s Schedule) firstDay(from, end int64) int64 {
	date := time.Unix(from*secondsPerDay, 0).UTC()
	for first := from - int64(date.Day()-1); first <= end; {
		if rest := s.daysOf(date) >> date.Day(); rest != 0 {
			return first + int64(date.Day()-1+bits.TrailingZeros32(rest))
		}
		date = time.Date(date.Year(), date.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		first = date.Unix() / secondsPerDay
	}
	return end + 1
}

// daysOf returns the days of the month of a date that match the schedule, as bits 1 to 31.
func (s Schedule) daysOf(date time.Time) uint32 {
	if s.months>>date.Month()&1 == 0 {
		return 0
	}
	first := date.AddDate(0, 0, 1-date.Day())
	// The multiplication repeats the week six times, and the shift makes it begin with the weekday
	// of the first day.
	const sixWeeks = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28 | 1<<35
	byWeekday := uint32(uint64(s.weekdays) * sixWeeks >> first.Weekday() << 1) //nolint:gosec // G115: a month needs the low 32 bits.
	days := s.days & byWeekday
	if s.either {
		days = s.days | byWeekday
	}
	return days & (2<<first.AddDate(0, 1, -1).Day() - 2)
}

func ceilMinute(seconds int64) int64 { return floorDiv(seconds+59, 60) }

func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }
func floorMod(a, b int64) int64 { return (a%b + b) % b }

const (
	// correction is the minimum change of the offset, in seconds, that is a correction of the
	// calendar and not daylight saving time: three hours, as in cronie's cron(8).
	correction = 3 * 60 * 60

	secondsPerDay = 24 * 60 * 60

	// always and never are the bounds of a period without bounds. Arithmetic with them does not
	// overflow.
	always = math.MinInt64 / 2
	never  = math.MaxInt64 / 2
)

// period is a period in which a location has one offset. Times are Unix seconds, offsets are
// seconds east of UTC. before is the offset before start. It is equal to offset if the change does
// not matter, because there is no earlier period or because the schedule is a wildcard schedule.
type period struct {
	start, end     int64
	offset, before int64
}

// periodAt returns the period of a location that contains an instant. Only a fixed schedule needs
// the offset before it: for such a schedule the period always starts at a change of the offset, and
// not where only the zone's abbreviation changed.
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

// zoneAt returns the period around an instant according to the time package. It may be shorter than
// the real period, because after the last change in a zone's table the package ends a period at the
// end of the year. It calculates with a year of 365 days, and before 1970 it is a day late, so that
// an instant may be outside of its own period. Then the result is the instant's day in UTC, at
// whose start the package's rules change anyway.
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

// resume returns the local time from which on a schedule runs in a period. It is the local time at
// which the period starts, or, if the clocks were set back at the start, the local time before the
// change, because the times between have already been.
func (p period) resume() int64 {
	repeat := p.before - p.offset
	if repeat <= 0 || repeat >= correction {
		return p.start + p.offset
	}
	return p.start + p.before
}
