// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package windows tells when changes may happen: the validation of spec.windows and spec.skipDates, and
// whether one of the windows is open at an instant. All of it is pure: the time is an argument.
package windows

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cron"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// horizon is how far At searches for the end of windows that follow each other without a gap. With one
// window for each minute, it would take forty thousand steps.
const horizon = 31 * 24 * time.Hour

// Windows are the parsed windows of a spec. The zero Windows has none, so a change may always happen.
type Windows struct {
	list  []window
	dates []string
}

type window struct {
	schedule cron.Schedule
	zone     *time.Location
	duration time.Duration
}

// Parse returns the windows of a spec. An error is one that Validate returns as well.
func Parse(spec modelv1.Windows) (Windows, error) {
	w := Windows{list: make([]window, 0, len(spec.Windows)), dates: spec.SkipDates}
	for i := range spec.Windows {
		schedule, err := cron.Parse(spec.Windows[i].Schedule)
		if err != nil {
			return Windows{}, fmt.Errorf("parsing the schedule of window %d: %w", i, err)
		}
		zone, err := cron.LoadLocation(cmp.Or(spec.Windows[i].TimeZone, rules.DefaultTimeZone))
		if err != nil {
			return Windows{}, fmt.Errorf("loading the time zone of window %d: %w", i, err)
		}
		w.list = append(w.list, window{schedule, zone, spec.Windows[i].Duration.Duration})
	}
	return w, nil
}

// Open reports whether a change may happen at an instant: a window is open, or there are none.
func (w Windows) Open(now time.Time) bool {
	return len(w.list) == 0 || w.end(now).After(now)
}

// At reports whether a change may happen at an instant, and when that changes next: when the open
// windows end, or when the next one opens. ok is false if it does not change within 31 days in which
// windows follow each other without a gap, or within the forty years of package cron; and always without
// windows.
func (w Windows) At(now time.Time) (open bool, change time.Time, ok bool) {
	if !w.Open(now) {
		change, ok = w.next(now)
		return false, change, ok
	}
	if len(w.list) == 0 {
		return true, time.Time{}, false
	}
	end := w.end(now)
	for later := w.end(end); later.After(end) && end.Sub(now) <= horizon; later = w.end(end) {
		end = later
	}
	if end.Sub(now) > horizon {
		return true, time.Time{}, false
	}
	return true, end, true
}

// end returns when the last of the windows ends that are open at an instant, the zero time if none is.
func (w Windows) end(at time.Time) time.Time {
	var end time.Time
	for i := range w.list {
		slot, ok := w.previous(&w.list[i], at)
		if closed := slot.Add(w.list[i].duration); ok && closed.After(end) {
			end = closed
		}
	}
	return end
}

// next returns when the next window opens.
func (w Windows) next(after time.Time) (next time.Time, ok bool) {
	for i := range w.list {
		slot, found := w.following(&w.list[i], after)
		if found && (!ok || slot.Before(next)) {
			next, ok = slot, true
		}
	}
	return next, ok
}

// previous returns when a window opened last, at or before an instant, unless it has ended by then.
func (w Windows) previous(of *window, at time.Time) (time.Time, bool) {
	slot, ok := of.schedule.Prev(at, of.zone)
	for ok && at.Sub(slot) < of.duration && w.skips(slot) {
		slot, ok = of.schedule.Prev(firstOf(slot).Add(-time.Second), of.zone)
	}
	return slot, ok && at.Sub(slot) < of.duration
}

// following returns when a window opens next, after an instant.
func (w Windows) following(of *window, after time.Time) (time.Time, bool) {
	slot, ok := of.schedule.Next(after, of.zone)
	for ok && w.skips(slot) {
		slot, ok = of.schedule.Next(lastOf(slot), of.zone)
	}
	return slot, ok
}

func (w Windows) skips(slot time.Time) bool {
	return len(w.dates) > 0 && slices.Contains(w.dates, slot.Format(time.DateOnly))
}

// firstOf returns an early second of the date of an instant, such that all seconds between the two have
// the date too: a change of the clocks in the night can leave a date and come back to it.
func firstOf(at time.Time) time.Time {
	first := at.Add(-clock(at))
	if change, _ := at.ZoneBounds(); change.After(first) {
		first = change
	}
	return earlier(first, at)
}

// lastOf returns a late second of the date of an instant, as firstOf returns an early one.
func lastOf(at time.Time) time.Time {
	last := at.Add(24*time.Hour - clock(at))
	if _, change := at.ZoneBounds(); !change.IsZero() {
		last = earlier(last, change)
	}
	if last = last.Add(-time.Second); last.After(at) {
		return last
	}
	return at
}

// clock returns the time of the day that the clocks show.
func clock(at time.Time) time.Duration {
	hour, minute, second := at.Clock()
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Default sets the defaults of the windows of a spec, which the schema has as well, and records them in
// ops, which may be nil.
func Default(spec *modelv1.Windows, ops *patch.Ops) {
	for i := range spec.Windows {
		if zone := &spec.Windows[i].TimeZone; *zone == "" {
			patch.Set(ops, "/spec/windows/"+strconv.Itoa(i)+"/timeZone", zone, rules.DefaultTimeZone)
		}
	}
}

// The bounds of the duration of a window, which are those of the schema.
const (
	minDuration = time.Minute
	maxDuration = 7 * 24 * time.Hour
)

// Validate returns the errors of the windows of a spec, whose path is parent.
func Validate(parent *field.Path, spec modelv1.Windows) field.ErrorList {
	if len(spec.Windows) == 0 && len(spec.SkipDates) == 0 {
		return nil
	}
	path := parent.Child("windows")
	errs := tooMany(path, len(spec.Windows), modelv1.MaxWindows)
	for i := range spec.Windows[:min(len(spec.Windows), modelv1.MaxWindows)] {
		errs = append(errs, validate(path.Index(i), &spec.Windows[i])...)
	}
	if len(spec.Windows) == 0 {
		errs = append(errs, field.Required(path, "skipDates are dates on which no window opens; "+
			`to allow changes on all other dates, add a window with schedule "0 0 * * *" and duration 24h`))
	}
	return append(errs, validateDates(parent.Child("skipDates"), spec.SkipDates)...)
}

// ValidateOnChange is Validate for a spec with restartOnChange, whose windows hold nothing but the rollouts of that field.
func ValidateOnChange(parent *field.Path, spec modelv1.Windows, restart modelv1.RestartOnChange) field.ErrorList {
	errs := Validate(parent, spec)
	if len(spec.Windows) > 0 && restart != modelv1.RestartOnChangeReferenced {
		errs = append(errs, field.Forbidden(parent.Child("windows"),
			"only rollouts of changed configuration wait for a window; set restartOnChange: Referenced, or remove windows and skipDates"))
	}
	return errs
}

func validate(path *field.Path, w *modelv1.Window) field.ErrorList {
	errs := rules.Schedule(path.Child("schedule"), w.Schedule)
	errs = append(errs, rules.TimeZone(path.Child("timeZone"), cmp.Or(w.TimeZone, rules.DefaultTimeZone))...)
	if d := w.Duration.Duration; d < minDuration || d > maxDuration || d%time.Second != 0 {
		errs = append(errs, field.Invalid(path.Child("duration"), d.String(), "must be 1m to 168h, in whole seconds"))
	}
	return errs
}

func validateDates(path *field.Path, dates []string) field.ErrorList {
	errs := tooMany(path, len(dates), modelv1.MaxSkipDates)
	for i, date := range dates[:min(len(dates), modelv1.MaxSkipDates)] {
		if _, err := time.Parse(time.DateOnly, date); err != nil {
			errs = append(errs, field.Invalid(path.Index(i), date, "must be a date such as 2026-12-24"))
		}
	}
	return errs
}

func tooMany(path *field.Path, count, most int) field.ErrorList {
	if count > most {
		return field.ErrorList{field.TooMany(path, count, most)}
	}
	return nil
}
