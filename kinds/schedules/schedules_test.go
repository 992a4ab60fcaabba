// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedules

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

var path = field.NewPath("spec", "schedules")

func schedules(lines ...string) []modelv1.Schedule {
	out := make([]modelv1.Schedule, 0, len(lines))
	for i, line := range lines {
		schedule, zone, _ := strings.Cut(line, ", ")
		out = append(out, modelv1.Schedule{Name: string(rune('a' + i)), Schedule: schedule, TimeZone: zone, Replicas: int32(i + 1)})
	}
	return out
}

// TestTimes has the last and the next times of schedules, as "name replicas time".
func TestTimes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spec         []modelv1.Schedule
		now          string
		latest, next string
	}{
		"day and night": {
			schedules("0 8 * * 1-5, Europe/Berlin", "0 20 * * *, Europe/Berlin"), "2026-11-24T12:00:00Z",
			"a 1 2026-11-24T08:00:00+01:00", "b 2 2026-11-24T20:00:00+01:00; a 1 2026-11-25T08:00:00+01:00; b 2 2026-11-25T20:00:00+01:00",
		},
		"at a time": {
			schedules("0 8 * * *"), "2026-11-24T08:00:00Z",
			"a 1 2026-11-24T08:00:00Z", "a 1 2026-11-25T08:00:00Z; a 1 2026-11-26T08:00:00Z; a 1 2026-11-27T08:00:00Z",
		},
		"of two at one time, the last in the list": {
			schedules("0 8 * * *", "0 9 * * *, Europe/Berlin", "0 0 1 * *"), "2026-11-24T09:00:00Z",
			"b 2 2026-11-24T09:00:00+01:00", "b 2 2026-11-25T09:00:00+01:00; b 2 2026-11-26T09:00:00+01:00; b 2 2026-11-27T09:00:00+01:00",
		},
		"a time that the clocks skip": {
			schedules("30 2 * * *, America/New_York"), "2026-03-08T06:59:59Z",
			"a 1 2026-03-07T02:30:00-05:00", "a 1 2026-03-08T03:00:00-04:00; a 1 2026-03-09T02:30:00-04:00; a 1 2026-03-10T02:30:00-04:00",
		},
		"the end of the calendar": {schedules("0 0 1 1 *"), "9998-06-01T00:00:00Z", "a 1 9998-01-01T00:00:00Z", "a 1 9999-01-01T00:00:00Z"},
		"none":                    {nil, "2026-11-24T09:00:00Z", "", ""},
	} {
		parsed, err := Parse(test.spec)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		format := func(at Time) string {
			return at.Name + " " + string('0'+at.Replicas) + " " + at.Format(time.RFC3339)
		}
		latest := ""
		if at := parsed.Latest(now); !at.IsZero() {
			latest = format(at)
		}
		var next []string
		for _, at := range parsed.Announced(now) {
			next = append(next, format(at))
		}
		if got := strings.Join(next, "; "); latest != test.latest || got != test.next {
			t.Errorf("%s: %q, %q; want %q, %q", name, latest, got, test.latest, test.next)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	change := func(how func(*modelv1.Schedule)) []modelv1.Schedule {
		all := schedules("0 8 * * *", "0 20 * * *, Europe/Berlin")
		how(&all[1])
		return all
	}
	for name, test := range map[string]struct {
		spec []modelv1.Schedule
		want []string
	}{
		"none":             {nil, nil},
		"valid":            {change(func(*modelv1.Schedule) {}), nil},
		"the same name":    {change(func(s *modelv1.Schedule) { s.Name = "a" }), []string{"spec.schedules[1].name"}},
		"no name":          {change(func(s *modelv1.Schedule) { s.Name = "" }), []string{"spec.schedules[1].name"}},
		"not a label":      {change(func(s *modelv1.Schedule) { s.Name = "A b" }), []string{"spec.schedules[1].name"}},
		"no time":          {change(func(s *modelv1.Schedule) { s.Schedule = "0 0 30 2 *" }), []string{"spec.schedules[1].schedule"}},
		"no time zone":     {change(func(s *modelv1.Schedule) { s.TimeZone = "Mars" }), []string{"spec.schedules[1].timeZone"}},
		"fewer than none":  {change(func(s *modelv1.Schedule) { s.Replicas = -1 }), []string{"spec.schedules[1].replicas"}},
		"the largest":      {change(func(s *modelv1.Schedule) { s.Replicas = modelv1.MaxReplicas }), nil},
		"more than that":   {change(func(s *modelv1.Schedule) { s.Replicas = modelv1.MaxReplicas + 1 }), []string{"spec.schedules[1].replicas"}},
		"too many":         {make([]modelv1.Schedule, modelv1.MaxSchedules+1), []string{"spec.schedules"}},
		"several mistakes": {change(func(s *modelv1.Schedule) { s.Schedule, s.Replicas = "", -1 }), []string{"spec.schedules[1].schedule", "spec.schedules[1].replicas"}},
	} {
		var got []string
		for _, err := range Validate(path, test.spec) {
			got = append(got, err.Field)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if _, err := Parse(test.spec); err != nil && len(got) == 0 {
			t.Errorf("%s: valid, but %v", name, err)
		}
	}
}

func TestWarn(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	got := Warn(path, schedules("0 8 * * *, Asia/Kolkata", "0 20 * * *"), now)
	want := []string{
		"spec.schedules[1]: 2 replicas from 2026-11-24T20:00:00Z on",
		"spec.schedules[0]: 1 replicas from 2026-11-25T08:00:00+05:30 on",
		"spec.schedules[1]: 2 replicas from 2026-11-25T20:00:00Z on",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Warn(path, schedules("never"), now); got != nil {
		t.Errorf("warnings of an invalid schedule: %q", got)
	}
}
