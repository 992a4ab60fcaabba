// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cron calculates the scheduled times of a cron schedule in a time zone.
//
// [Parse] parses a schedule, [Schedule.Next] and [Schedule.Prev] return the next and the previous
// scheduled time, and [LoadLocation] returns a zone by its name. The package reads no clock and
// keeps no state. A scheduled time, or slot, is an instant in whole seconds.
//
// # Expressions
//
// An expression has five fields, separated by spaces or tabs, as in a Kubernetes CronJob:
//
//	minute         0-59
//	hour           0-23
//	day of month   1-31
//	month          1-12 or jan-dec
//	day of week    0-7  or sun-sat, where both 0 and 7 are Sunday
//
// A field is a list of items, separated by commas. An item is a value; a range a-b; * or ?, which
// mean the same, every value; or one of these with a step: a-b/s is every s-th value of the range,
// */s of the field, and a/s runs from a to the field's end, which is 6 (Saturday) for weekdays. If
// a step is larger than the range, only the first value remains. Names have three letters in any
// case. 5-7 and fri-sun are Friday to Sunday, 7-7 is Sunday, 0-7 is every day, and 7/s is the same
// as 0/s.
//
// Also accepted are @yearly and @annually (0 0 1 1 *), @monthly (0 0 1 * *), @weekly (0 0 * * 0),
// @daily and @midnight (0 0 * * *), and @hourly (0 * * * *).
//
// Refused are ranges whose end is before their start, empty list items, signs, steps of 0, fields
// for seconds and years, @every, @reboot, a zone in the expression (TZ=, CRON_TZ=), more than
// [MaxLength] bytes, and a schedule without a day in any year, such as 0 0 30 2 *.
//
// # Days
//
// If the day of month and the day of week are both restricted, a day matches if either of them
// matches: 0 0 13 * 5 runs on each 13th and on each Friday. If only one is restricted, only that
// one must match. A field is unrestricted if one of its items is * or ?, also with a step of 1
// (*/1); */2, 1-31 and 0-6 are restrictions.
//
// # Changes of the clocks
//
// Daylight saving is handled as ISC cron and cronie do; see "Daylight Saving Time and other time
// changes" in cron(8). There are two types of schedules. A schedule with *, ? or a step in its
// minute or hour field, such as */15 * * * * or @hourly, is a wildcard schedule. A schedule with
// only values, lists and ranges there, such as 30 2 * * *, 0-59 2 * * * or @daily, is a fixed
// schedule.
//
// A wildcard schedule runs whenever the local time is one of its times. In an hour that is repeated
// it runs twice, and in an hour that is skipped it does not run.
//
// A fixed schedule runs once for each of its times. If the clocks are set forward over one or
// several of them, it runs once, at the instant of the change, even if the following minute is one
// of its times too. The date and the weekday of a skipped time are those that it would have had. If
// the clocks are set back, repeated times are omitted the second time.
//
//	America/New_York                 30 2 * * *    2026-03-08 03:00 EDT, the instant at which 02:00 became 03:00
//	                                 0 2,3 * * *   2026-03-08 03:00 EDT, once
//	                                 */30 2 * * *  not on 2026-03-08
//	                                 30 1 * * *    2026-11-01 01:30 EDT, not again at 01:30 EST
//	                                 30 * * * *    2026-11-01 01:30 EDT and 01:30 EST
//
// These rules depend on the change of the offset from UTC, and not on whether the zone calls it
// daylight saving time. A change of three hours or more, in either direction, is a correction of
// the calendar: a skipped time does not run, and a repeated time runs twice. So 0 12 * * * did not
// run on 30 December 2011 in Pacific/Apia, a day that was skipped, and 30 0 * * * ran twice on 5
// March 2010 in Antarctica/Casey, where 02:00 became 23:00.
//
// # Bounds
//
// Next and Prev search up to forty years and stay within the years 1 to 9999 (UTC). The longest
// time between two days of a schedule is eight years, for 29 February around a year like 2100. They
// step only over months and changes of the offset, and allocate no memory.
package cron
