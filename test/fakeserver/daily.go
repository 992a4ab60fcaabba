// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeserver

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// ClockChange is a change of the clocks in a zone, on a date.
type ClockChange struct{ Zone, Date string }

// ClockChanges are those of zones in which few expect them: by half an hour, by two hours, over midnight,
// and forward in winter.
var ClockChanges = []ClockChange{
	{"Europe/Berlin", "2026-03-29"},
	{"Europe/Berlin", "2026-10-25"},
	{"Australia/Lord_Howe", "2026-04-05"},
	{"Australia/Lord_Howe", "2026-10-04"},
	{"America/Nuuk", "2026-03-28"},
	{"America/Nuuk", "2026-10-24"},
	{"Antarctica/Troll", "2026-03-29"},
	{"Antarctica/Troll", "2026-10-25"},
	{"Africa/Casablanca", "2026-02-15"},
	{"Africa/Casablanca", "2026-03-22"},
}

// Day returns the date of a change in its time zone.
func (c ClockChange) Day() time.Time {
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		panic(err)
	}
	day, err := time.ParseInLocation(time.DateOnly, c.Date, zone)
	if err != nil {
		panic(err)
	}
	return day
}

// Daily is a schedule with one time on some days of the week, which are computed without package
// cron.
type Daily struct {
	Hour, Minute int
	Days         [7]bool
	Zone         *time.Location
}

// RandomDaily returns a schedule whose time is mostly between 23:00 and 04:00, when clocks change.
func RandomDaily(rnd *rand.Rand, zone *time.Location) Daily {
	d := Daily{Hour: rnd.IntN(24), Minute: rnd.IntN(60), Zone: zone}
	if rnd.IntN(3) > 0 {
		d.Hour = (23 + rnd.IntN(5)) % 24
	}
	d.Days[rnd.IntN(7)] = true
	for day := range d.Days {
		d.Days[day] = d.Days[day] || rnd.IntN(10) < 7
	}
	return d
}

// Expression returns the schedule in cron format.
func (d *Daily) Expression() string {
	expression, comma := fmt.Sprintf("%d %d * * ", d.Minute, d.Hour), ""
	for day, on := range d.Days {
		if on {
			expression += fmt.Sprintf("%s%d", comma, day)
			comma = ","
		}
	}
	return expression
}

// Passed returns the last time that is not after an instant.
func (d *Daily) Passed(now time.Time) time.Time {
	for day := now.In(d.Zone).AddDate(0, 0, 1); ; day = day.AddDate(0, 0, -1) {
		wall := time.Date(day.Year(), day.Month(), day.Day(), d.Hour, d.Minute, 0, 0, time.UTC)
		if at := d.instant(wall); !at.After(now) && d.Days[wall.Weekday()] {
			return at
		}
	}
}

// instant returns when the clocks show a time, which is given as one of UTC: the first time if they
// show it twice, and the instant of the change if they skip it. They change at most once in two days.
func (d *Daily) instant(wall time.Time) time.Time {
	before, after := wall.Add(-24*time.Hour), wall.Add(24*time.Hour)
	old, offset := d.offset(before), d.offset(after)
	first := wall.Add(-max(old, offset))
	for _, at := range []time.Time{first, wall.Add(-min(old, offset))} {
		if at.Add(d.offset(at)).Equal(wall) {
			return at.In(d.Zone)
		}
	}
	for after.Sub(before) > time.Second {
		if middle := before.Add(after.Sub(before) / 2); d.offset(middle) == old {
			before = middle
		} else {
			after = middle
		}
	}
	return after.Truncate(time.Second).In(d.Zone)
}

func (d *Daily) offset(at time.Time) time.Duration {
	_, seconds := at.In(d.Zone).Zone()
	return time.Duration(seconds) * time.Second
}
