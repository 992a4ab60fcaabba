// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedules tells which number of replicas applies when: the validation of spec.schedules,
// the scheduled time whose number applies at an instant, and the next ones. All of it is pure: the
// time is an argument.
package schedules

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cron"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// announced is the number of scheduled times in warnings and in status.
const announced = 3

// Schedules are the parsed schedules of a spec.
type Schedules struct {
	times Times
	spec  []modelv1.Schedule
}

// Time is a scheduled time: the name of its schedule, and the number of replicas from then on. The
// zero Time is none.
type Time struct {
	Slot
	Name     string
	Replicas int32
}

// Parse returns the schedules of a spec. An error is one that Validate returns as well.
func Parse(spec []modelv1.Schedule) (Schedules, error) {
	times := make(Times, len(spec))
	for i, of := range spec {
		var err error
		if times[i], err = cron.ParseIn(of.Schedule, of.TimeZone); err != nil {
			return Schedules{}, fmt.Errorf("parsing schedule %q: %w", of.Name, err)
		}
	}
	return Schedules{times, spec}, nil
}

// Latest is Times.Latest.
func (s Schedules) Latest(at time.Time) Time { return s.of(s.times.Latest(at)) }

// Next is Times.Next. So several schedules that have the same time are one Time, that of the last
// one, whose number applies.
func (s Schedules) Next(after time.Time) Time { return s.of(s.times.Next(after)) }

// Due is Times.Due.
func (s Schedules) Due(open, now time.Time) Time {
	due, _ := s.times.Due(open, now, nil)
	return s.of(due)
}

// Announced returns the next three scheduled times after an instant, fewer at the end of the
// calendar.
func (s Schedules) Announced(after time.Time) (out []Time) {
	for next := s.Next(after); !next.IsZero() && len(out) < announced; next = s.Next(next.Time) {
		out = append(out, next)
	}
	return out
}

func (s Schedules) of(slot Slot) Time {
	if slot.IsZero() {
		return Time{}
	}
	return Time{slot, s.spec[slot.Index].Name, s.spec[slot.Index].Replicas}
}

// Default sets the defaults of schedules, which the schema has as well.
func Default(spec []modelv1.Schedule) {
	for i := range spec {
		spec[i].TimeZone = cmp.Or(spec[i].TimeZone, cron.DefaultZone)
	}
}

// Validate returns the errors of schedules.
func Validate(path *field.Path, spec []modelv1.Schedule) field.ErrorList {
	if len(spec) > modelv1.MaxSchedules {
		return field.ErrorList{field.TooMany(path, len(spec), modelv1.MaxSchedules)}
	}
	var errs field.ErrorList
	names := make(map[string]bool, len(spec))
	for i := range spec {
		at, s := path.Index(i), &spec[i]
		errs = append(errs, rules.Label(at.Child("name"), s.Name)...)
		if names[s.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), s.Name))
		}
		names[s.Name] = true
		errs = append(errs, rules.Schedule(at.Child("schedule"), s.Schedule)...)
		errs = append(errs, rules.TimeZone(at.Child("timeZone"), cmp.Or(s.TimeZone, cron.DefaultZone))...)
		errs = append(errs, rules.Between(at.Child("replicas"), &s.Replicas, 0, modelv1.MaxReplicas)...)
	}
	return rules.MarkIneffective(errs...)
}

// Warn returns the next three scheduled times after an instant, each in the time zone of its
// schedule, in at most 120 characters. Invalid schedules have none.
func Warn(path *field.Path, spec []modelv1.Schedule, now time.Time) []string {
	parsed, err := Parse(spec)
	if err != nil {
		return nil
	}
	var out []string
	for _, next := range parsed.Announced(now) {
		out = append(out, fmt.Sprintf("%s: %d replicas from %s on", path.Index(next.Index), next.Replicas, next.Format(time.RFC3339)))
	}
	return out
}
