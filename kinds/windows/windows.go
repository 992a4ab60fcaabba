// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package windows tells when changes may happen: the validation of spec.windows and spec.skipDates,
// and whether one of the windows is open at an instant. All of it is pure: the time is an argument.
package windows

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cron"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Windows are the parsed windows of a spec. The zero Windows has none, so a change may always
// happen.
type Windows struct {
	list  []window
	dates []string
}

type window struct {
	cron.Times
	duration time.Duration
}

// Parse returns the windows of a spec. An error is one that Validate returns as well.
func Parse(spec modelv1.Windows) (Windows, error) {
	w := Windows{list: make([]window, len(spec.Windows)), dates: spec.SkipDates}
	for i, of := range spec.Windows {
		times, err := cron.ParseIn(of.Schedule, of.TimeZone)
		if err != nil {
			return Windows{}, fmt.Errorf("parsing window %d: %w", i, err)
		}
		w.list[i] = window{times, of.Duration.Duration}
	}
	return w, nil
}

// Open reports whether a change may happen at an instant: a window is open, or there are none.
func (w Windows) Open(now time.Time) bool {
	return len(w.list) == 0 || slices.ContainsFunc(w.list, func(of window) bool {
		slot, ok := w.next(of, now.Add(-of.duration))
		return ok && !slot.After(now)
	})
}

// maxJoined is the number of windows that OpenUntil joins, which bounds its time: more than a day
// of windows of a minute. After so many it counts as closed.
const maxJoined = 2000

// OpenUntil returns until when windows are open without a break from an instant on, at most limit.
// It is from itself if no window is open then, and limit if there are no windows at all.
func (w Windows) OpenUntil(from, limit time.Time) time.Time {
	if len(w.list) == 0 {
		return limit
	}
	for joined := 0; from.Before(limit) && joined < maxJoined; joined++ {
		end := from
		for _, of := range w.list {
			if slot := w.covering(of, from); slot.Add(of.duration).After(end) {
				end = slot.Add(of.duration)
			}
		}
		if end.Equal(from) {
			return from
		}
		from = end
	}
	if from.After(limit) {
		return limit
	}
	return from
}

// covering returns when a window opened that is open at an instant, the zero time if none is.
func (w Windows) covering(of window, at time.Time) time.Time {
	slot, ok := of.Prev(at, of.Zone)
	if ok && w.isSkipped(slot) {
		slot, ok = w.next(of, at.Add(-of.duration))
	}
	if !ok || slot.After(at) {
		return time.Time{}
	}
	return slot
}

// isSkipped reports whether no window opens on the date of an instant.
func (w Windows) isSkipped(at time.Time) bool {
	return slices.Contains(w.dates, at.Format(time.DateOnly))
}

// Opens returns when the next window opens after an instant. ok is false if none does within the
// forty years of package cron.
func (w Windows) Opens(after time.Time) (opens time.Time, ok bool) {
	for _, of := range w.list {
		slot, found := w.next(of, after)
		if found && (!ok || slot.Before(opens)) {
			opens, ok = slot, true
		}
	}
	return opens, ok
}

// StartsNow reports whether an object has api.AnnotationRolloutNow for its present spec, whose changes
// wait for no window then.
func StartsNow(obj metav1.Object) bool {
	return obj.GetAnnotations()[api.AnnotationRolloutNow] == strconv.FormatInt(obj.GetGeneration(), 10)
}

// HeldUntil returns when the window opens for which spec.holdChanges makes a change of the pods wait at
// an instant. ok is false if the change waits for none, if none opens, or if the windows are invalid.
func HeldUntil(hold modelv1.HoldChanges, spec modelv1.Windows, now time.Time) (opens time.Time, ok bool) {
	if hold != modelv1.HoldChangesAll {
		return time.Time{}, false
	}
	w, err := Parse(spec)
	if err != nil || w.Open(now) {
		return time.Time{}, false
	}
	return w.Opens(now)
}

// next returns when a window opens next, after an instant.
func (w Windows) next(of window, after time.Time) (time.Time, bool) {
	slot, ok := of.Next(after, of.Zone)
	for ok && w.isSkipped(slot) {
		slot, ok = of.Next(lastOf(slot), of.Zone)
	}
	return slot, ok
}

// lastOf returns a late second of the date of an instant, such that all seconds between the two
// have the date too: a change of the clocks in the night can leave a date and come back to it.
func lastOf(at time.Time) time.Time {
	const day = 24 * 60 * 60
	_, offset := at.Zone()
	last := at.Unix() + day - 1 - (at.Unix()+int64(offset))%day
	if _, change := at.ZoneBounds(); !change.IsZero() {
		last = min(last, change.Unix()-1)
	}
	return time.Unix(max(last, at.Unix()), 0)
}

// Default sets the defaults of the windows of a spec, which the schema has as well.
func Default(spec *modelv1.Windows) {
	for i := range spec.Windows {
		spec.Windows[i].TimeZone = cmp.Or(spec.Windows[i].TimeZone, cron.DefaultZone)
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
	return rules.MarkIneffective(append(errs, validateDates(parent.Child("skipDates"), spec.SkipDates)...)...)
}

// ValidateOnChange is Validate for a spec with restartOnChange and holdChanges, one of which must make
// something wait for the windows.
func ValidateOnChange(parent *field.Path, spec modelv1.Windows, restart modelv1.RestartOnChange, hold modelv1.HoldChanges) field.ErrorList {
	errs := Validate(parent, spec)
	if len(spec.Windows) > 0 && restart != modelv1.RestartOnChangeReferenced && hold != modelv1.HoldChangesAll {
		errs = append(errs, field.Forbidden(parent.Child("windows"), "no rollout waits for a window; set restartOnChange: Referenced for those of "+
			"changed configuration, or holdChanges: All for each one, or remove windows and skipDates"))
	}
	return rules.MarkIneffective(errs...)
}

func validate(path *field.Path, w *modelv1.Window) field.ErrorList {
	errs := rules.Schedule(path.Child("schedule"), w.Schedule)
	errs = append(errs, rules.TimeZone(path.Child("timeZone"), cmp.Or(w.TimeZone, cron.DefaultZone))...)
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
