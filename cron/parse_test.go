// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	takesMinute  = `; it takes 0-59 or *, also in lists (1,2), ranges (1-5) and steps (*/2)`
	takesHour    = `; it takes 0-23 or *, also in lists (1,2), ranges (1-5) and steps (*/2)`
	takesDay     = `; it takes 1-31, * or ?, also in lists (1,2), ranges (1-5) and steps (*/2)`
	takesMonth   = `; it takes 1-12, jan-dec or *, also in lists (1,2), ranges (1-5) and steps (*/2)`
	takesWeekday = `; it takes 0-7 (0 and 7 are Sunday), sun-sat, * or ?, also in lists (1,2), ranges (1-5) and steps (*/2)`
	takesFive    = `a schedule has five fields (minute, hour, day of month, month, day of week) but this one has `
	takesMacro   = `@yearly, @annually, @monthly, @weekly, @daily, @midnight or @hourly`
)

// set returns the values as bits.
func set[T uint8 | uint16 | uint32 | uint64](values ...int) T {
	var bits T
	for _, v := range values {
		bits |= 1 << v
	}
	return bits
}

func span[T uint8 | uint16 | uint32 | uint64](low, high int) T {
	var bits T
	for v := low; v <= high; v++ {
		bits |= 1 << v
	}
	return bits
}

// fixedEvery is "0 0 * * *", which the cases below modify.
var fixedEvery = Schedule{minutes: 1, hours: 1, days: span[uint32](1, 31), months: span[uint16](1, 12), weekdays: span[uint8](0, 6)}

func TestParse(t *testing.T) {
	t.Parallel()
	for expr, change := range map[string]func(s *Schedule){
		"0 0 * * *":           func(*Schedule) {},
		"  0\t 0  * *\t\t*\n": func(*Schedule) {},
		"00 000 * * *":        func(*Schedule) {},
		"0 0 ? ? ?":           func(*Schedule) {},
		"0 0 */1 * ?/1":       func(*Schedule) {},
		"0 0 5,* * *":         func(*Schedule) {},
		"0,0 0 1-31 * *":      func(*Schedule) {},
		"@daily":              func(*Schedule) {},
		" @midnight ":         func(*Schedule) {},
		"@hourly":             func(s *Schedule) { s.hours, s.wild = span[uint32](0, 23), true },
		"@weekly":             func(s *Schedule) { s.weekdays = 1 },
		"@monthly":            func(s *Schedule) { s.days = set[uint32](1) },
		"@yearly":             func(s *Schedule) { s.days, s.months = set[uint32](1), set[uint16](1) },
		"@annually":           func(s *Schedule) { s.days, s.months = set[uint32](1), set[uint16](1) },
		"* 0 * * *":           func(s *Schedule) { s.minutes, s.wild = span[uint64](0, 59), true },
		"0-59 0 * * *":        func(s *Schedule) { s.minutes = span[uint64](0, 59) },
		"?/20 0 * * *":        func(s *Schedule) { s.minutes, s.wild = set[uint64](0, 20, 40), true },
		"50/3,1 0 * * *":      func(s *Schedule) { s.minutes, s.wild = set[uint64](1, 50, 53, 56, 59), true },
		"59/1 0 * * *":        func(s *Schedule) { s.minutes, s.wild = set[uint64](59), true },
		"5-9/1 0 * * *":       func(s *Schedule) { s.minutes, s.wild = span[uint64](5, 9), true },
		"*/99 0 * * *":        func(s *Schedule) { s.wild = true },
		"*/1" + strings.Repeat("0", 80) + " 0 * * *": func(s *Schedule) { s.wild = true },
		"3,1-2,30-40/5 0 * * *":                      func(s *Schedule) { s.minutes, s.wild = set[uint64](1, 2, 3, 30, 35, 40), true },
		"0 1-1,22/1 * * *":                           func(s *Schedule) { s.hours, s.wild = set[uint32](1, 22, 23), true },
		"0 23,0 * * *":                               func(s *Schedule) { s.hours = set[uint32](0, 23) },
		"0 0 */2 * *":                                func(s *Schedule) { s.days = 0xAAAAAAAA },
		"0 0 28/2 * *":                               func(s *Schedule) { s.days = set[uint32](28, 30) },
		"0 0 31/1 * *":                               func(s *Schedule) { s.days = set[uint32](31) },
		"0 0 13 * 5":                                 func(s *Schedule) { s.days, s.weekdays, s.either = set[uint32](13), set[uint8](5), true },
		"0 0 */2 * 5":                                func(s *Schedule) { s.days, s.weekdays, s.either = 0xAAAAAAAA, set[uint8](5), true },
		"0 0 1-31 * 5":                               func(s *Schedule) { s.weekdays, s.either = set[uint8](5), true },
		"0 0 1/1 * 5":                                func(s *Schedule) { s.weekdays, s.either = set[uint8](5), true },
		"0 0 */1 * 5":                                func(s *Schedule) { s.weekdays = set[uint8](5) },
		"0 0 ? * 5":                                  func(s *Schedule) { s.weekdays = set[uint8](5) },
		"0 0 13 * */2":                               func(s *Schedule) { s.days, s.weekdays, s.either = set[uint32](13), set[uint8](0, 2, 4, 6), true },
		"0 0 13 * */1":                               func(s *Schedule) { s.days = set[uint32](13) },
		"0 0 29 2 *":                                 func(s *Schedule) { s.days, s.months = set[uint32](29), set[uint16](2) },
		"0 0 30 2 1":                                 func(s *Schedule) { s.days, s.months, s.weekdays, s.either = set[uint32](30), set[uint16](2), 2, true },
		"0 0 31 2,dec *":                             func(s *Schedule) { s.days, s.months = set[uint32](31), set[uint16](2, 12) },
		"0 0 * JAN,mAr-MAY,11 *":                     func(s *Schedule) { s.months = set[uint16](1, 3, 4, 5, 11) },
		"0 0 * feb/5 *":                              func(s *Schedule) { s.months = set[uint16](2, 7, 12) },
		"0 0 * jan-dec/6 *":                          func(s *Schedule) { s.months = set[uint16](1, 7) },
		"0 0 * * 7":                                  func(s *Schedule) { s.weekdays = set[uint8](0) },
		"0 0 * * SUN":                                func(s *Schedule) { s.weekdays = set[uint8](0) },
		"0 0 * * 7-7":                                func(s *Schedule) { s.weekdays = set[uint8](0) },
		"0 0 * * 6-7":                                func(s *Schedule) { s.weekdays = set[uint8](0, 6) },
		"0 0 * * 5-7":                                func(s *Schedule) { s.weekdays = set[uint8](0, 5, 6) },
		"0 0 * * 1-7/2":                              func(s *Schedule) { s.weekdays = set[uint8](0, 1, 3, 5) },
		"0 0 * * 0-7":                                func(*Schedule) {},
		"0 0 * * mon-sun":                            func(*Schedule) {},
		"0 0 * * sun-sat":                            func(*Schedule) {},
		"0 0 * * Sat-Sun":                            func(s *Schedule) { s.weekdays = set[uint8](0, 6) },
		"0 0 * * sun-sun":                            func(s *Schedule) { s.weekdays = set[uint8](0) },
		"0 0 * * 7-sun":                              func(s *Schedule) { s.weekdays = set[uint8](0) },
		"0 0 * * mon-5":                              func(s *Schedule) { s.weekdays = span[uint8](1, 5) },
		"0 0 * * 5/1":                                func(s *Schedule) { s.weekdays = set[uint8](5, 6) },
		"0 0 * * 6/1":                                func(s *Schedule) { s.weekdays = set[uint8](6) },
		"0 0 * * 7/2":                                func(s *Schedule) { s.weekdays = set[uint8](0, 2, 4, 6) },
		"0 0 * * sun/2":                              func(s *Schedule) { s.weekdays = set[uint8](0, 2, 4, 6) },
	} {
		want := fixedEvery
		change(&want)
		got, err := Parse(expr)
		if err != nil {
			t.Errorf("Parse(%q): %v", expr, err)
		} else if got != want {
			t.Errorf("Parse(%q):\ngot  %+v\nwant %+v", expr, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		"":                                "the schedule is empty; give five fields (minute, hour, day of month, month, day of week) or one of " + takesMacro,
		" \t\n":                           "the schedule is empty; give five fields (minute, hour, day of month, month, day of week) or one of " + takesMacro,
		strings.Repeat("*", MaxLength+1):  "the schedule is 1025 bytes long, at most 1024 are allowed; use ranges and steps in place of lists",
		"TZ=UTC 0 0 * * *":                `a schedule does not take "TZ=UTC"; give the time zone in timeZone and leave the five fields here`,
		"CRON_TZ=Europe/Berlin 0 0 * * *": `a schedule does not take "CRON_TZ=Europe/Berlin"; give the time zone in timeZone and leave the five fields here`,
		"0 0 * *":                         takesFive + "4; there are none for seconds and years",
		"daily":                           takesFive + "1; there are none for seconds and years",
		"@every 1h":                       "@every is not supported, because a schedule names times of the clock; use a step such as */5 * * * *, or one of " + takesMacro,
		"@reboot":                         "@reboot is not supported, because it names no time; use five fields or one of " + takesMacro,
		"@Daily":                          `"@Daily" is not a known macro; use one of ` + takesMacro + ", in lower case, or five fields",
		"@fortnightly":                    `"@fortnightly" is not a known macro; use one of ` + takesMacro + ", in lower case, or five fields",
		"@daily 0 0 * *":                  "@daily stands for a whole schedule; remove what follows it",
		"0 0 30 2 *":                      `the schedule never fires, because no month in "2" has a day in "30"; change the month field or the day of month field`,
		"*/5 * 31 apr,6,9,NOV ?":          `the schedule never fires, because no month in "apr,6,9,NOV" has a day in "31"; change the month field or the day of month field`,
		"61 * * * *":                      `"61" in the minute field is out of range` + takesMinute,
		"0-60 * * * *":                    `"0-60" in the minute field is out of range` + takesMinute,
		"5,99999999999999999999 * * * *":  `"99999999999999999999" in the minute field is out of range` + takesMinute,
		"1" + strings.Repeat("0", 80) + " * * * *": `"1` + strings.Repeat("0", 39) + `"... in the minute field is out of range` + takesMinute,
		"1.5 * * * *":                            `"1.5" in the minute field is not one of its values` + takesMinute,
		"-5 * * * *":                             `"-5" in the minute field is not one of its values` + takesMinute,
		"- * * * *":                              `"-" in the minute field is not one of its values` + takesMinute,
		"1-2-3 * * * *":                          `"1-2-3" in the minute field is not one of its values` + takesMinute,
		"** * * * *":                             `"**" in the minute field is not one of its values` + takesMinute,
		"1,,2 * * * *":                           `"1,,2" in the minute field has an empty list item` + takesMinute,
		"1, 2 * * *":                             `"1," in the minute field has an empty list item` + takesMinute,
		"*/0 * * * *":                            `"*/0" in the minute field has a step that is not a number from 1 on` + takesMinute,
		"*/-2 * * * *":                           `"*/-2" in the minute field has a step that is not a number from 1 on` + takesMinute,
		"*/2/3 * * * *":                          `"*/2/3" in the minute field has a step that is not a number from 1 on` + takesMinute,
		"٣ * * * *":                              `"٣" in the minute field is not one of its values` + takesMinute,
		"\x00 * * * *":                           `"\x00" in the minute field is not one of its values` + takesMinute,
		strings.Repeat("5", 50) + "x * * * *":    `"` + strings.Repeat("5", 40) + `"... in the minute field is not one of its values` + takesMinute,
		"* 24 * * *":                             `"24" in the hour field is out of range` + takesHour,
		"* 22-5 * * *":                           `"22-5" in the hour field is a range that runs backwards (give two ranges, such as 5-6,0-1)` + takesHour,
		"* * 0 * *":                              `"0" in the day of month field is out of range` + takesDay,
		"* * 32 * *":                             `"32" in the day of month field is out of range` + takesDay,
		"* * L * *":                              `"L" in the day of month field is not one of its values` + takesDay,
		"* * * 0 *":                              `"0" in the month field is out of range` + takesMonth,
		"* * * sun *":                            `"sun" in the month field is not one of its values` + takesMonth,
		"* * * * 8":                              `"8" in the day of week field is out of range` + takesWeekday,
		"* * * * mon-":                           `"mon-" in the day of week field is not one of its values` + takesWeekday,
		"* * * * monday":                         `"monday" in the day of week field is not one of its values` + takesWeekday,
		"* * * * ſun":                            `"ſun" in the day of week field is not one of its values` + takesWeekday,
		"* * * * 5-0":                            `"5-0" in the day of week field is a range that runs backwards (give two ranges, such as 5-6,0-1)` + takesWeekday,
		"60 24 0 0 9":                            `"60" in the minute field is out of range` + takesMinute,
		strings.Repeat("0,", 500) + "60 * * * *": `"60" in the minute field is out of range` + takesMinute,
		"0 0 * * * " + strings.Repeat("* ", 400): takesFive + "405; there are none for seconds and years",
		"@" + strings.Repeat("a", MaxLength-1) + "": `"@` + strings.Repeat("a", 39) + `"... is not a known macro; use one of ` + takesMacro + ", in lower case, or five fields",
	} {
		got, err := Parse(expr)
		if diff := cmp.Diff(want, errText(err)); diff != "" {
			t.Errorf("Parse(%.80q) (-want +got):\n%s", expr, diff)
		}
		if got != (Schedule{}) {
			t.Errorf("Parse(%.80q) returned a schedule together with an error", expr)
		}
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
