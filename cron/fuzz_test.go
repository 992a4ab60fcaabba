// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// FuzzParse checks that Parse returns an error of one line, or a schedule that fires.
func FuzzParse(f *testing.F) {
	for _, expr := range append(changingSchedules, "@hourly", "TZ=UTC 0 0 * * *", "0 0 30 2 *", "0 0 * jan-dec/6 Sat-Sun", "mon- * 5--9 */0 1,,2", "@every 1h") {
		f.Add(expr)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		s, err := Parse(expr)
		if err != nil {
			text := err.Error()
			if len(text) > 600 || strings.ContainsAny(text, "\n\x00") || s != (Schedule{}) {
				t.Errorf("Parse(%q): %+v, %q", expr, s, text)
			}
			return
		}
		if _, ok := s.Next(instant(t, "2026-01-01T00:00:00Z"), time.UTC); !ok {
			t.Errorf("%q never fires", expr)
		}
		if strings.Contains(expr, "@") {
			return // The macros are in lower case.
		}
		again, err := Parse(strings.ToUpper(strings.Join(strings.Fields(expr), "\t")))
		if err != nil || again != s {
			t.Errorf("%q depends on its case or spaces", expr)
		}
	})
}

// FuzzNext checks for any schedule, instant and zone that Next and Prev are inverse functions, that no scheduled time is
// missed, and that the scheduled times of a wildcard schedule match the local time.
func FuzzNext(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 62))
	for i := range 60 {
		f.Add(randomExpr(random), random.Int64N(5e9), uint16(i*10))
	}
	for _, expr := range changingSchedules {
		f.Add(expr, int64(1772953200), uint16(174))
	}
	f.Add("0 0 29 2 *", int64(earliest), uint16(0))
	f.Add("0 0 31 12 ?", int64(2240524800), uint16(300))
	f.Fuzz(func(t *testing.T, expr string, unix int64, zone uint16) {
		s, err := Parse(expr)
		if err != nil {
			return
		}
		at := time.Unix(unix, unix&0x3fffffff%1e9)
		loc := mustLoad(t, zoneList()[int(zone)%len(zoneList())])
		next, ok := s.Next(at, loc)
		switch {
		case ok:
			checkNext(t, s, loc, at, next)
		case unix > earliest && unix < latest-longest:
			t.Fatalf("%q in %s has no slot after %v", expr, loc, at)
		}
		if prev, ok := s.Prev(at, loc); ok {
			checkPrev(t, s, loc, at, prev)
		} else if unix > earliest+longest && unix < latest {
			t.Fatalf("%q in %s has no slot before %v", expr, loc, at)
		}
	})
}

// longest is longer than the longest time between two scheduled times, in seconds.
const longest = 9 * 366 * secondsPerDay

func checkNext(t *testing.T, s Schedule, loc *time.Location, at, next time.Time) {
	t.Helper()
	if wait := next.Unix() - at.Unix(); !next.After(at) || wait > longest {
		t.Fatalf("Next(%v) in %s is %v", at, loc, next)
	}
	if own, ok := s.Prev(next, loc); !ok || !own.Equal(next) {
		t.Fatalf("%v in %s is a slot for Next, Prev has %v", next, loc, own)
	}
	if before, ok := s.Prev(next.Add(-1), loc); ok && before.After(at) {
		t.Fatalf("Next(%v) in %s is %v and passes over %v", at, loc, next, before)
	}
	if s.wild && !matches(s, next) {
		t.Fatalf("Next(%v) in %s is %v, which does not match the schedule", at, loc, next)
	}
}

func checkPrev(t *testing.T, s Schedule, loc *time.Location, at, prev time.Time) {
	t.Helper()
	if wait := at.Unix() - prev.Unix(); prev.After(at) || wait > longest {
		t.Fatalf("Prev(%v) in %s is %v", at, loc, prev)
	}
	if own, ok := s.Next(prev.Add(-1), loc); prev.Unix() > earliest && (!ok || !own.Equal(prev)) {
		t.Fatalf("%v in %s is a slot for Prev, Next has %v", prev, loc, own)
	}
	if after, ok := s.Next(prev, loc); ok && !after.After(at) {
		t.Fatalf("Prev(%v) in %s is %v and passes over %v", at, loc, prev, after)
	}
	if s.wild && !matches(s, prev) {
		t.Fatalf("Prev(%v) in %s is %v, which does not match the schedule", at, loc, prev)
	}
}

// matches reports whether the local time of t matches a schedule.
func matches(s Schedule, t time.Time) bool {
	onDay := s.days>>t.Day()&1 == 1
	if onWeekday := s.weekdays>>t.Weekday()&1 == 1; s.either {
		onDay = onDay || onWeekday
	} else {
		onDay = onDay && onWeekday
	}
	onTime := s.hours>>t.Hour()&1 == 1 && s.minutes>>t.Minute()&1 == 1 && t.Second() == 0
	return onDay && onTime && s.months>>t.Month()&1 == 1
}
