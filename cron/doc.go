// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cron finds out when a cron schedule is due in a time zone.
//
// [Parse] reads a schedule, [Schedule.Next] and [Schedule.Prev] step from slot to slot, and [LoadLocation] finds a
// zone by its name. Nothing here has a clock of its own or keeps state. A slot is the instant of a run, to the second.
//
// # Expressions
//
// An expression has five fields, separated by blanks or tabs, as the CronJobs of Kubernetes have them:
//
//	minute         0-59
//	hour           0-23
//	day of month   1-31
//	month          1-12 or jan-dec
//	day of week    0-7  or sun-sat, where both 0 and 7 are Sunday
//
// A field is a list of items, separated by commas. An item is a value; a range a-b; * or ?, which mean the same, every
// value; or one of these with a step: a-b/s is every s-th value of the range, */s of the field, and a/s runs from a to
// the field's end, which is 6 (Saturday) for weekdays. A step larger than what it steps through leaves the first value.
// Names have three letters in any case. 5-7 and fri-sun are Friday to Sunday, 7-7 is Sunday, 0-7 is every day, and 7/s
// is the same as 0/s.
//
// Also taken are @yearly and @annually (0 0 1 1 *), @monthly (0 0 1 * *), @weekly (0 0 * * 0), @daily and @midnight
// (0 0 * * *), and @hourly (0 * * * *).
//
// Refused are ranges that run backwards, empty list items, signs, steps of 0, fields for seconds and years, @every,
// @reboot, a zone in the expression (TZ=, CRON_TZ=), more than [MaxLength] bytes, and a schedule without a day in any
// year, such as 0 0 30 2 *.
//
// # Days
//
// If the day of month and the day of week are both restricted, a day is taken that either of them names: 0 0 13 * 5
// runs on each 13th and on each Friday. If only one is restricted, that one decides. A field is unrestricted only if an
// item of it is * or ?, also with a step of 1 (*/1); */2 restricts, and so do 1-31 and 0-6.
//
// # Changes of the clocks
//
// Daylight saving is handled as ISC cron and cronie do; see "Daylight Saving Time and other time changes" in cron(8).
// There are two sorts of schedules. One with *, ? or a step anywhere in its minute or hour field, such as */15 * * * *
// or @hourly, is a wildcard. One with nothing but values, lists and ranges there, such as 30 2 * * *, 0-59 2 * * * or
// @daily, is fixed.
//
// A wildcard follows elapsed time: it runs whenever the clock on the wall shows one of its times. In an hour that comes
// twice it runs twice, in one that is skipped it does not run.
//
// A fixed schedule means each of its times once. If the clock is put forward over one or several of them, it runs once,
// at the instant of the change, even if the minute that then begins is one of its times as well. The date and the
// weekday of a time that was swallowed are those it would have had. If the clock is put back, times that come again are
// left out the second time.
//
//	America/New_York                 30 2 * * *    2026-03-08 03:00 EDT, the instant at which 02:00 became 03:00
//	                                 0 2,3 * * *   2026-03-08 03:00 EDT, once
//	                                 */30 2 * * *  not on 2026-03-08
//	                                 30 1 * * *    2026-11-01 01:30 EDT, not again at 01:30 EST
//	                                 30 * * * *    2026-11-01 01:30 EDT and 01:30 EST
//
// What counts is the change of the offset from UTC, not what a zone calls its standard and its summer time. A change of
// three hours or more, in either direction, corrects the calendar: the new time holds at once, nothing is made up
// for and nothing is left out. So 0 12 * * * did not run on 30 December 2011 in Pacific/Apia, a day that was
// skipped, and 30 0 * * * ran twice on 5 March 2010 in Antarctica/Casey, where 02:00 became 23:00.
//
// # Bounds
//
// Next and Prev look forty years far and stay within the years 1 to 9999 (UTC). The longest wait that a calendar can
// cause is eight years, for 29 February around a year like 2100. Nothing is counted or stepped through on the way but
// months and changes of the clocks, and nothing is allocated.
package cron
