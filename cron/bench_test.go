// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import (
	"testing"
	"time"
)

// benchmarked are schedules in the order of their cost.
var benchmarked = []struct{ name, expr, zone, at string }{
	{"quarters", "*/15 * * * *", "America/New_York", "2026-06-01T12:00:00Z"},
	{"daily", "0 0 * * *", "Etc/UTC", "2026-06-01T12:00:00Z"},
	{"nightly", "30 2 * * *", "America/New_York", "2026-03-08T01:00:00Z"},
	{"yearly", "0 0 1 1 *", "Europe/London", "2026-01-01T00:00:00Z"},
	{"leap", "0 0 29 2 *", "America/New_York", "2096-02-29T05:00:00Z"},
	{"leapUTC", "0 0 29 2 *", "Etc/UTC", "2096-02-29T05:00:00Z"},
}

func BenchmarkParse(b *testing.B) {
	for _, expr := range []string{"0 0 * * *", "@hourly", "0,10-30/5,45 8-18 1,15 jan-jun,dec mon-fri"} {
		b.Run(expr, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Parse(expr)
			}
		})
	}
}

func BenchmarkNext(b *testing.B) {
	for _, bm := range benchmarked {
		b.Run(bm.name, func(b *testing.B) {
			s, loc, at := mustParse(b, bm.expr), mustLoad(b, bm.zone), instant(b, bm.at)
			b.ReportAllocs()
			for b.Loop() {
				s.Next(at, loc)
			}
		})
	}
}

// BenchmarkPrevAfterYear searches back over a year of downtime.
func BenchmarkPrevAfterYear(b *testing.B) {
	for _, bm := range benchmarked {
		b.Run(bm.name, func(b *testing.B) {
			s, loc, at := mustParse(b, bm.expr), mustLoad(b, bm.zone), instant(b, bm.at).AddDate(1, 0, -1)
			b.ReportAllocs()
			for b.Loop() {
				s.Prev(at, loc)
			}
		})
	}
}

func BenchmarkLoadLocation(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = LoadLocation("America/New_York")
	}
}

func mustParse(tb testing.TB, expr string) Schedule {
	tb.Helper()
	s, err := Parse(expr)
	if err != nil {
		tb.Fatalf("Parse(%q): %v", expr, err)
	}
	return s
}

func mustLoad(tb testing.TB, zone string) *time.Location {
	tb.Helper()
	loc, err := LoadLocation(zone)
	if err != nil {
		tb.Fatalf("LoadLocation(%q): %v", zone, err)
	}
	return loc
}

func instant(tb testing.TB, text string) time.Time {
	tb.Helper()
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}
