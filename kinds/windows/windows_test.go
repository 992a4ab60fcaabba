// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package windows

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cron"
)

// changes are dates on which clocks change: by an hour, half an hour or a day, and at midnight, so
// that a date begins late, is there twice, or is not there at all.
var changes = []struct{ zone, date string }{
	{"Europe/Berlin", "2026-03-29"},
	{"America/New_York", "2026-11-01"},
	{"America/Sao_Paulo", "2018-11-04"},
	{"America/Sao_Paulo", "2018-02-18"},
	{"America/St_Johns", "2006-04-02"},
	{"America/St_Johns", "2006-10-29"},
	{"Australia/Lord_Howe", "2026-04-05"},
	{"Pacific/Apia", "2011-12-30"},
	{"Etc/UTC", "2026-01-01"},
}

// TestEveryMinute compares Open and Opens with a model that goes through the minutes one by one,
// over changes of the clocks.
func TestEveryMinute(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(29, 3))
	opened, closed := 0, 0
	for i := range 8 * len(changes) {
		change := changes[i%len(changes)]
		day, err := time.Parse(time.DateOnly, change.date)
		if err != nil {
			t.Fatal(err)
		}
		spec := randomWindows(random, change.zone, day)
		w, err := Parse(spec)
		if err != nil || len(Validate(nil, spec)) > 0 {
			t.Fatalf("%+v: %v, %v", spec, err, Validate(nil, spec))
		}
		from, states := model(t, spec, day)
		for range 200 {
			minute := random.IntN(len(states) - 1)
			at := from.Add(time.Duration(minute)*time.Minute + time.Duration(random.IntN(60))*time.Second)
			if w.Open(at) != states[minute] {
				t.Fatalf("%+v\nat %v: open is %t", spec, at, !states[minute])
			}
			if states[minute] {
				opened++
				continue
			}
			closed++
			next, ok := w.Opens(at)
			want, wantOK := firstOpening(states, minute, from)
			if wantOK && (!ok || !next.Equal(want)) || !wantOK && ok && next.Before(from.Add(length)) {
				t.Fatalf("%+v\nat %v: %v, %v; want %v, %v", spec, at, next, ok, want, wantOK)
			}
		}
	}
	if opened < 500 || closed < 500 {
		t.Errorf("%d open and %d closed: too few of one", opened, closed)
	}
}

// length is the time that the model covers, from eight days before a change of the clocks.
const length = 20 * 24 * time.Hour

// model returns the state in each minute of some days, and the first of these minutes.
func model(t *testing.T, spec modelv1.Windows, day time.Time) (time.Time, []bool) {
	t.Helper()
	from := day.Add(-8 * 24 * time.Hour)
	states := make([]bool, length/time.Minute)
	for _, window := range spec.Windows {
		schedule, err := cron.Parse(window.Schedule)
		if err != nil {
			t.Fatal(err)
		}
		zone, err := time.LoadLocation(window.TimeZone)
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for at := from.Add(-8 * 24 * time.Hour); at.Before(from.Add(length)); at = at.Add(time.Minute) {
			slot, ok := schedule.Next(at.Add(-time.Second), zone)
			if ok && slot.Equal(at) && !slices.Contains(spec.SkipDates, at.In(zone).Format(time.DateOnly)) {
				left = int(window.Duration.Duration / time.Minute)
			}
			if left > 0 && !at.Before(from) {
				states[at.Sub(from)/time.Minute] = true
			}
			left--
		}
	}
	return from, states
}

func firstOpening(states []bool, minute int, from time.Time) (time.Time, bool) {
	if i := slices.Index(states[minute:], true); i >= 0 {
		return from.Add(time.Duration(minute+i) * time.Minute), true
	}
	return time.Time{}, false
}

func randomWindows(random *rand.Rand, zone string, day time.Time) modelv1.Windows {
	schedules := []string{
		"0 0 * * *", "30 2 * * *", "0 22 * * 1-5", "0 3 * * 6", "0-59 1 * * *", "15 23 * * *", "*/20 2-3 * * *", "0 */6 * * *", "0 0 1 * *", "1 0 29 2 *",
	}
	durations := []time.Duration{time.Minute, 20 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 25 * time.Hour, 60 * time.Hour, maxDuration}
	var spec modelv1.Windows
	for range 1 + random.IntN(3) {
		spec.Windows = append(spec.Windows, modelv1.Window{
			Schedule: schedules[random.IntN(len(schedules))], TimeZone: zone, Duration: metav1.Duration{Duration: durations[random.IntN(len(durations))]},
		})
	}
	if random.IntN(4) == 0 {
		spec.Windows[0].TimeZone = "Asia/Kolkata"
	}
	for range random.IntN(5) {
		spec.SkipDates = append(spec.SkipDates, day.AddDate(0, 0, random.IntN(7)-3).Format(time.DateOnly))
	}
	return spec
}

// TestChanges has what documentation promises: of an open window the end, and of none the next
// opening.
func TestChanges(t *testing.T) {
	t.Parallel()
	window := func(schedule, zone, duration string) modelv1.Window {
		d, err := time.ParseDuration(duration)
		if err != nil {
			t.Fatal(err)
		}
		return modelv1.Window{Schedule: schedule, TimeZone: zone, Duration: metav1.Duration{Duration: d}}
	}
	for _, test := range []struct {
		name    string
		windows []modelv1.Window
		dates   []string
		now     string
		open    bool
		change  string
	}{
		{"none: always open", nil, nil, "2026-11-24T12:00:00Z", true, ""},
		{"before one", []modelv1.Window{window("0 2 * * *", "", "2h")}, nil, "2026-11-24T01:59:59Z", false, "2026-11-24T02:00:00Z"},
		{"its first instant", []modelv1.Window{window("0 2 * * *", "", "2h")}, nil, "2026-11-24T02:00:00Z", true, "2026-11-24T04:00:00Z"},
		{"its end", []modelv1.Window{window("0 2 * * *", "", "2h")}, nil, "2026-11-24T04:00:00Z", false, "2026-11-25T02:00:00Z"},
		{"elapsed time over a change of the clocks", []modelv1.Window{window("0 1 * * *", "Europe/Berlin", "3h")}, nil, "2026-03-29T00:30:00Z", true, "2026-03-29T03:00:00Z"},
		{"a skipped time opens at the change", []modelv1.Window{window("30 2 * * *", "Europe/Berlin", "1h")}, nil, "2026-03-29T00:59:59Z", false, "2026-03-29T01:00:00Z"},
		{"two that meet", []modelv1.Window{window("0 2 * * *", "", "2h"), window("0 4 * * *", "", "1h")}, nil, "2026-11-24T03:00:00Z", true, "2026-11-24T05:00:00Z"},
		{"a date in the time zone of the window", []modelv1.Window{window("0 1 * * *", "Asia/Shanghai", "2h")}, []string{"2026-12-24"}, "2026-12-23T16:00:00Z", false, "2026-12-24T17:00:00Z"},
		{"a window that is open when the date begins", []modelv1.Window{window("0 23 * * *", "", "2h")}, []string{"2026-12-24"}, "2026-12-24T00:30:00Z", true, "2026-12-24T01:00:00Z"},
		{"one after the other", []modelv1.Window{window("* * * * *", "", "1m")}, nil, "2026-11-24T12:00:00Z", true, ""},
		{"no next one within the calendar", []modelv1.Window{window("0 0 1 1 *", "", "1m")}, nil, "9999-06-01T00:00:00Z", false, ""},
	} {
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		w, err := Parse(modelv1.Windows{Windows: test.windows, SkipDates: test.dates})
		if err != nil {
			t.Fatal(err)
		}
		if open := w.Open(now); open != test.open {
			t.Errorf("%s: open is %t", test.name, open)
		}
		change, err := time.Parse(time.RFC3339, test.change)
		switch opens, ok := w.Opens(now); {
		case !test.open && (ok != (err == nil) || !opens.Equal(change)):
			t.Errorf("%s: the next one opens at %v, %v", test.name, opens, ok)
		case test.open && err == nil && (w.Open(change) || !w.Open(change.Add(-time.Nanosecond))):
			t.Errorf("%s: it does not end at %v", test.name, change)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	window := func(change func(*modelv1.Window)) modelv1.Windows {
		w := modelv1.Window{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}}
		change(&w)
		return modelv1.Windows{Windows: []modelv1.Window{w}}
	}
	dates := func(dates ...string) modelv1.Windows {
		w := window(func(*modelv1.Window) {})
		w.SkipDates = dates
		return w
	}
	many := window(func(*modelv1.Window) {})
	for len(many.Windows) <= modelv1.MaxWindows {
		many.Windows = append(many.Windows, many.Windows[0])
	}
	for name, test := range map[string]struct {
		spec modelv1.Windows
		want []string
	}{
		"none":                {modelv1.Windows{}, nil},
		"the shortest":        {window(func(w *modelv1.Window) { w.Duration.Duration = time.Minute }), nil},
		"the longest":         {window(func(w *modelv1.Window) { w.Duration.Duration = 168 * time.Hour }), nil},
		"too short":           {window(func(w *modelv1.Window) { w.Duration.Duration = 59 * time.Second }), []string{"spec.windows[0].duration"}},
		"too long":            {window(func(w *modelv1.Window) { w.Duration.Duration += 168 * time.Hour }), []string{"spec.windows[0].duration"}},
		"half a second":       {window(func(w *modelv1.Window) { w.Duration.Duration += time.Second / 2 }), []string{"spec.windows[0].duration"}},
		"no time":             {window(func(w *modelv1.Window) { w.Schedule = "0 0 30 2 *" }), []string{"spec.windows[0].schedule"}},
		"two at once":         {window(func(w *modelv1.Window) { w.Schedule, w.TimeZone = "", "Mars" }), []string{"spec.windows[0].schedule", "spec.windows[0].timeZone"}},
		"too many":            {many, []string{"spec.windows"}},
		"dates":               {dates("2026-12-24", "2028-02-29"), nil},
		"no date":             {dates("2026-12-24", "2026-02-29", "24.12.2026"), []string{"spec.skipDates[1]", "spec.skipDates[2]"}},
		"dates but no window": {modelv1.Windows{SkipDates: []string{"2026-12-24"}}, []string{"spec.windows"}},
		"too many dates":      {dates(slices.Repeat([]string{"2026-12-24"}, modelv1.MaxSkipDates+1)...), []string{"spec.skipDates"}},
	} {
		var got []string
		for _, err := range Validate(field.NewPath("spec"), test.spec) {
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

func TestWindowsHoldSomething(t *testing.T) {
	t.Parallel()
	some := modelv1.Windows{Windows: []modelv1.Window{{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}}}}
	for _, test := range []struct {
		spec    modelv1.Windows
		restart modelv1.RestartOnChange
		hold    modelv1.HoldChanges
		refused bool
	}{
		{modelv1.Windows{}, "", "", false},
		{modelv1.Windows{}, "", modelv1.HoldChangesAll, false},
		{some, modelv1.RestartOnChangeReferenced, "", false},
		{some, modelv1.RestartOnChangeNone, modelv1.HoldChangesAll, false},
		{some, modelv1.RestartOnChangeNone, modelv1.HoldChangesConfiguration, true},
		{some, "", "", true},
		{modelv1.Windows{SkipDates: []string{"2026-12-24"}}, modelv1.RestartOnChangeReferenced, "", true},
	} {
		errs := ValidateOnChange(field.NewPath("spec"), test.spec, test.restart, test.hold)
		if refused := len(errs) == 1 && errs[0].Field == "spec.windows"; refused != test.refused || !refused && len(errs) > 0 {
			t.Errorf("%+v with %q, %q: %v", test.spec, test.restart, test.hold, errs)
		}
	}
}
