// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const layout = "2006-01-02 15:04:05 -0700"

// TestNext shows the rules by example, in local time, and has the instants at which the oracle does not look.
func TestNext(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, expr, zone, after string
		want                    []string
	}{{
		"strictly after", "*/15 * * * *", "Etc/UTC", "2026-06-01T12:15:00Z",
		[]string{"2026-06-01 12:30:00 +0000", "2026-06-01 12:45:00 +0000", "2026-06-01 13:00:00 +0000"},
	}, {
		"within a second", "*/15 * * * *", "Etc/UTC", "2026-06-01T12:14:59.999999999Z",
		[]string{"2026-06-01 12:15:00 +0000"},
	}, {
		"before 1970", "*/15 * * * *", "Etc/UTC", "1969-12-31T23:45:00.5Z",
		[]string{"1970-01-01 00:00:00 +0000", "1970-01-01 00:15:00 +0000"},
	}, {
		"29 February across 2100", "0 0 29 2 *", "America/New_York", "2092-03-01T00:00:00Z",
		[]string{"2096-02-29 00:00:00 -0500", "2104-02-29 00:00:00 -0500"},
	}, {
		"fixed, skipped, once at the change", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
		[]string{"2026-03-08 03:00:00 -0400", "2026-03-09 02:30:00 -0400"},
	}, {
		"skipped, within the last second before the gap", "30 2 * * *", "America/New_York", "2026-03-08T06:59:59.9Z",
		[]string{"2026-03-08 03:00:00 -0400", "2026-03-09 02:30:00 -0400"},
	}, {
		"fixed, repeated, the first time", "30 1 * * *", "America/New_York", "2026-11-01T04:00:00Z",
		[]string{"2026-11-01 01:30:00 -0400", "2026-11-02 01:30:00 -0500"},
	}, {
		"wildcard, repeated, both", "30 * * * *", "America/New_York", "2026-11-01T04:45:00Z",
		[]string{"2026-11-01 01:30:00 -0400", "2026-11-01 01:30:00 -0500", "2026-11-01 02:30:00 -0500"},
	}, {
		"a day that was skipped", "0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z",
		[]string{"2011-12-29 12:00:00 -1000", "2011-12-31 12:00:00 +1400"},
	}, {
		"a gap that does not begin at a full minute", "10 0 * * *", "Africa/Monrovia", "1972-01-06T12:00:00Z",
		[]string{"1972-01-07 00:44:30 +0000", "1972-01-08 00:10:00 +0000"},
	}, {
		"an offset with seconds", "10 0 * * *", "Africa/Monrovia", "1972-01-05T12:00:00Z",
		[]string{"1972-01-06 00:10:00 -0044"},
	}, {
		"the last day of a leap year, after the zone's table", "0 12 31 12 *", "America/New_York", "2040-12-31T12:00:00Z",
		[]string{"2040-12-31 12:00:00 -0500", "2041-12-31 12:00:00 -0500"},
	}, {
		"the end of time", "0 0 * * *", "Etc/UTC", "9999-12-30T12:00:00Z",
		[]string{"9999-12-31 00:00:00 +0000", "none"},
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, loc, at := mustParse(t, test.expr), mustLoad(t, test.zone), instant(t, test.after)
			if diff := cmp.Diff(test.want, runs(s.Next, at, loc, len(test.want))); diff != "" {
				t.Errorf("%q after %s (-want +got):\n%s", test.expr, test.after, diff)
			}
		})
	}
}

func TestPrev(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, expr, zone, at, want string
	}{
		{"at a scheduled time", "30 1 * * *", "Etc/UTC", "2026-06-01T01:30:00Z", "2026-06-01 01:30:00 +0000"},
		{"until the end of the minute", "30 1 * * *", "Etc/UTC", "2026-06-01T01:30:59.9Z", "2026-06-01 01:30:00 +0000"},
		{"years ago", "0 0 29 2 *", "Europe/London", "2104-02-28T12:00:00Z", "2096-02-29 00:00:00 +0000"},
		{"skipped, at the change", "30 2 * * *", "America/New_York", "2026-03-08T07:00:00Z", "2026-03-08 03:00:00 -0400"},
		{"not the second", "30 1 * * *", "America/New_York", "2026-11-01T06:45:00Z", "2026-11-01 01:30:00 -0400"},
		{"the last day of a leap year, after the zone's table", "0 6 * * *", "America/New_York", "2040-12-31T12:00:00Z", "2040-12-31 06:00:00 -0500"},
		{"since the beginning", "0 0 1 1 *", "Etc/UTC", "0001-01-01T12:00:00Z", "0001-01-01 00:00:00 +0000"},
		{"before the beginning", "0 12 1 1 *", "Etc/UTC", "0001-01-01T11:00:00Z", "none"},
		{"before the beginning, in the year 0 of local time", "0 12 * * *", "America/New_York", "0001-01-01T01:00:00Z", "none"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := runs(mustParse(t, test.expr).Prev, instant(t, test.at), mustLoad(t, test.zone), 1)
			if diff := cmp.Diff([]string{test.want}, got); diff != "" {
				t.Errorf("%q at %s (-want +got):\n%s", test.expr, test.at, diff)
			}
		})
	}
}

// runs returns n scheduled times of Next or Prev.
func runs(step func(time.Time, *time.Location) (time.Time, bool), at time.Time, loc *time.Location, n int) []string {
	var texts []string
	for range n {
		slot, ok := step(at, loc)
		if !ok {
			return append(texts, "none")
		}
		texts = append(texts, slot.Format(layout))
		at = slot
	}
	return texts
}

// TestNoSlot checks instants and schedules without a scheduled time.
func TestNoSlot(t *testing.T) {
	t.Parallel()
	// The clocks are set forward on 1 January, so that the day's first hour is always skipped.
	newYear := ruledZone(t, "<A>0<B>-1,J1/0,J182/0")
	midnights := mustParse(t, "*/60 0 1 1 *")
	never, always := time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0)
	tests := []struct {
		name string
		s    Schedule
		at   time.Time
		loc  *time.Location
	}{
		{"zero schedule", Schedule{}, time.Unix(0, 0), newYear},
		{"always in a gap", midnights, instant(t, "2026-06-01T00:00:00Z"), newYear},
		{"end of int64", fixedEvery, never, time.UTC},
		{"beginning of int64", fixedEvery, always, time.UTC},
		{"after the year 9999", fixedEvery, time.Unix(latest+1, 0), mustLoad(t, "America/New_York")},
		{"before the year 1", fixedEvery, time.Unix(earliest-1, 0), mustLoad(t, "America/New_York")},
	}
	for _, test := range tests {
		if got, ok := test.s.Next(test.at, test.loc); ok || !got.IsZero() {
			t.Errorf("%s: Next = %v, %v", test.name, got, ok)
		}
		if got, ok := test.s.Prev(test.at, test.loc); ok || !got.IsZero() {
			t.Errorf("%s: Prev = %v, %v", test.name, got, ok)
		}
	}
}

// TestRuleBefore1970 uses a zone that always follows a rule. For such a zone the time package
// returns wrong bounds of years before 1970.
func TestRuleBefore1970(t *testing.T) {
	t.Parallel()
	loc := ruledZone(t, "EST5EDT,M3.2.0,M11.1.0")
	hours := mustParse(t, "0 * * * *")
	start, end := instant(t, "1964-12-20T00:00:00Z").Unix(), instant(t, "1965-01-10T00:00:00Z").Unix()
	forward, backward := walk(hours, loc, start, end)
	if len(forward) != 21*24 || !cmp.Equal(forward, backward) {
		t.Errorf("got %d and %d hours, want %d", len(forward), len(backward), 21*24)
	}
}
