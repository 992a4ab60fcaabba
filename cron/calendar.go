// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import (
	"math/bits"
	"time"
)

// This file handles the calendar without time zones: its minutes and days are in local time, counted from
// 1 January 1970 as if the offset from UTC had never changed.

const minutesPerDay = 24 * 60

// firstMinute returns the first minute of the schedule that is neither before from nor at or after end.
func (s Schedule) firstMinute(from, end int64) (int64, bool) {
	day := floorDiv(from, minutesPerDay)
	if clock, ok := s.clockFrom(int(from - day*minutesPerDay)); ok && s.onDay(day) {
		minute := day*minutesPerDay + clock
		return minute, minute < end
	}
	day, ok := s.firstDay(day+1, floorDiv(end-1, minutesPerDay))
	if !ok {
		return 0, false
	}
	clock, _ := s.clockFrom(0)
	minute := day*minutesPerDay + clock
	return minute, minute < end
}

// lastMinute returns the last minute of the schedule that is neither after to nor before start.
func (s Schedule) lastMinute(to, start int64) (int64, bool) {
	day := floorDiv(to, minutesPerDay)
	if clock, ok := s.clockUpTo(int(to - day*minutesPerDay)); ok && s.onDay(day) {
		minute := day*minutesPerDay + clock
		return minute, minute >= start
	}
	day, ok := s.lastDay(day-1, floorDiv(start, minutesPerDay))
	if !ok {
		return 0, false
	}
	clock, _ := s.clockUpTo(minutesPerDay - 1)
	minute := day*minutesPerDay + clock
	return minute, minute >= start
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

// clockUpTo returns the last minute of a day that matches the schedule and is not after clock.
func (s Schedule) clockUpTo(clock int) (int64, bool) {
	hour, minute := clock/60, clock%60
	if rest := s.minutes << (63 - minute); rest != 0 && s.hours>>hour&1 == 1 {
		return int64(clock - bits.LeadingZeros64(rest)), true
	}
	rest := s.hours & (1<<hour - 1)
	if rest == 0 {
		return 0, false
	}
	hour = bits.Len32(rest) - 1
	return int64(hour*60 + bits.Len64(s.minutes) - 1), true
}

// onDay reports whether a day matches the schedule.
func (s Schedule) onDay(day int64) bool {
	m, d := monthOf(day)
	return s.daysOf(m)>>d&1 == 1
}

// firstDay returns the first day of the schedule that is not before from. It stops at the month after end.
func (s Schedule) firstDay(from, end int64) (int64, bool) {
	m, d := monthOf(from)
	for ; m.first <= end; m, d = m.next(), 1 {
		if rest := s.daysOf(m) >> d; rest != 0 {
			return m.first + int64(d-1+bits.TrailingZeros32(rest)), true
		}
	}
	return 0, false
}

// lastDay returns the last day of the schedule that is not after to. It stops at the month before start.
func (s Schedule) lastDay(to, start int64) (int64, bool) {
	m, d := monthOf(to)
	for ; m.first+int64(d) > start; m, d = m.prev(), 31 {
		if rest := s.daysOf(m) & (2<<d - 1); rest != 0 {
			return m.first + int64(bits.Len32(rest)-2), true
		}
	}
	return 0, false
}

// daysOf returns the days of a month that match the schedule, as bits 1 to 31.
func (s Schedule) daysOf(m month) uint32 {
	if s.months>>m.number&1 == 0 {
		return 0
	}
	// The multiplication repeats the week six times, and the shift makes it begin with the weekday of the first day.
	const sixWeeks = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28 | 1<<35
	byWeekday := uint32(uint64(s.weekdays) * sixWeeks >> m.firstWeekday() << 1) //nolint:gosec // G115: a month needs the low 32 bits.
	days := s.days & byWeekday
	if s.either {
		days = s.days | byWeekday
	}
	return days & (2<<m.length() - 2)
}

// month is a month of the Gregorian calendar, extended to all years; first is its first day.
type month struct {
	first  int64
	year   int
	number time.Month
}

// monthOf returns the month of a day, and the day's number in it, from 1.
func monthOf(day int64) (month, int) {
	year, number, d := time.Unix(day*secondsPerDay, 0).UTC().Date()
	return month{first: day - int64(d-1), year: year, number: number}, d
}

func (m month) next() month {
	n := month{first: m.first + int64(m.length()), year: m.year, number: m.number + 1}
	if n.number > time.December {
		n.year, n.number = n.year+1, time.January
	}
	return n
}

func (m month) prev() month {
	n := month{year: m.year, number: m.number - 1}
	if n.number < time.January {
		n.year, n.number = n.year-1, time.December
	}
	n.first = m.first - int64(n.length())
	return n
}

// length returns the number of days of the month.
func (m month) length() int {
	switch m.number {
	case time.February:
		if m.year%4 == 0 && (m.year%100 != 0 || m.year%400 == 0) {
			return 29
		}
		return 28
	case time.April, time.June, time.September, time.November:
		return 30
	}
	return 31
}

// firstWeekday returns the weekday of the month's first day; 1 January 1970 was a Thursday.
func (m month) firstWeekday() time.Weekday {
	return time.Weekday(floorMod(m.first+int64(time.Thursday), 7))
}

func floorMinute(seconds int64) int64 { return floorDiv(seconds, 60) }
func ceilMinute(seconds int64) int64  { return floorDiv(seconds+59, 60) }

func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }
func floorMod(a, b int64) int64 { return (a%b + b) % b }
