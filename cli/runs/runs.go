// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runs lists the runs of schedules, also of all that objects have, and says which of them a
// change of the clocks concerns.
package runs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/cron"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
)

// Time is a scheduled time of an object. Of several things at one instant it is the last one that
// applies: schedules before restarts, and restarts before windows.
type Time struct {
	Time time.Time `json:"time"`
	// Note says what a change of the clocks has to do with it, empty if nothing.
	Note      string `json:"note,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Object is KIND/NAME, and Field the path of what has the schedule, which is in TimeZone.
	Object   string `json:"object,omitempty"`
	Field    string `json:"field,omitempty"`
	TimeZone string `json:"timeZone"`
	// Action is what happens, and Changes whether the operator then changes something.
	Action  string `json:"action,omitempty"`
	Changes bool   `json:"changes"`
	// Collisions is the number of other changes in the same minute and namespace.
	Collisions int `json:"collisions,omitempty"`

	parts []*part
}

// part is one of the schedules of an object. next is its first time after an instant.
type part struct {
	cron.Times
	field, zone string
	does        func(time.Time) (action string, changes bool)
	after, next time.Time
	ends        bool
}

func newPart(field, schedule, zone string, does func(time.Time) (string, bool)) (*part, error) {
	times, err := cron.ParseIn(schedule, zone)
	return &part{Times: times, field: field, zone: cmp.Or(zone, cron.DefaultZone), does: does}, err
}

// advance moves to the first time after an instant.
func (p *part) advance(after time.Time) {
	if !p.ends && !p.next.After(after) {
		next, ok := p.Next(after, p.Zone)
		p.after, p.next, p.ends = after, next, !ok
	}
}

// New returns a schedule of no object, before its first time. Without a zone it is in UTC.
func New(schedule, zone string) (*Time, error) {
	only, err := newPart("", schedule, zone, func(time.Time) (string, bool) { return "", false })
	return &Time{parts: []*part{only}}, err
}

// Of returns the scheduled times of an object of one of the five kinds, before the first one: those
// of replicas, of restarts, and of windows. An Eru that is not enabled has none. restarted is the
// restartedAt of the Deployment of an Eru, before which nothing restarts it. An error is one that
// admission returns as well.
func Of(object *unstructured.Unstructured, restarted time.Time) (*Time, error) {
	obj := struct {
		Spec struct {
			mtsrev1.EruSpec `json:",inline"`
			Schedules       []modelv1.Schedule      `json:"schedules"`
			RestartOnChange modelv1.RestartOnChange `json:"restartOnChange"`
			HoldChanges     modelv1.HoldChanges     `json:"holdChanges"`
		} `json:"spec"`
	}{}
	out := &Time{Namespace: object.GetNamespace(), Object: strings.ToLower(object.GetKind()) + "/" + object.GetName()}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &obj)
	add := func(field, schedule, zone string, does func(time.Time) (string, bool)) {
		of, invalid := newPart(field, schedule, zone, does)
		if invalid != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", field, invalid))
		}
		out.parts = append(out.parts, of)
	}
	if obj.Spec.Enabled || obj.Spec.RestartOnChange == modelv1.RestartOnChangeReferenced || obj.Spec.HoldChanges == modelv1.HoldChangesAll {
		for i, w := range obj.Spec.Windows.Windows {
			add(fmt.Sprintf("spec.windows[%d]", i), w.Schedule, w.TimeZone, func(at time.Time) (string, bool) {
				if slices.Contains(obj.Spec.SkipDates, at.Format(time.DateOnly)) {
					return "no window: a date of skipDates", false
				}
				return "window of " + short(w.Duration.Duration) + " opens", false
			})
		}
	}
	if obj.Spec.Enabled {
		spec := &obj.Spec.EruSpec
		spec.Schedule = cmp.Or(spec.Schedule, eru.DefaultSchedule)
		// Its error is that of a part.
		plan, _ := eru.NewPlan(&mtsrev1.Eru{ObjectMeta: metav1.ObjectMeta{UID: object.GetUID()}, Spec: *spec})
		r := restart{plan, object.GetUID() != "", restarted}
		add("spec.schedule", spec.Schedule, spec.TimeZone, r.at)
	}
	for i, s := range obj.Spec.Schedules {
		add(fmt.Sprintf("spec.schedules[%d]", i), s.Schedule, s.TimeZone, func(time.Time) (string, bool) {
			return fmt.Sprintf("%d replicas (%s)", s.Replicas, s.Name), true
		})
	}
	return out, err
}

// restart is what decides about the restarts of an Eru.
type restart struct {
	eru.Plan
	// stored is false for an object of a manifest, which has no uid, so that its jitter is not
	// known.
	stored    bool
	restarted time.Time
}

// at returns what happens at a scheduled time. The window of that time has to be open until the
// start after the jitter.
func (r *restart) at(slot time.Time) (string, bool) {
	from, to := slot, r.Start(slot)
	if r.stored {
		from = to
	}
	spread := to.Sub(slot)
	switch {
	case r.restarted.After(slot):
		return "no restart: skipped until " + r.restarted.UTC().Format(time.RFC3339) + ", restartedAt of the Deployment", false
	case !r.InWindow(slot, from):
		return "no restart: outside of the windows", false
	case !r.InWindow(slot, to):
		return "restart within " + short(spread) + ", if a window is open then", true
	case to.After(from):
		return "restart within " + short(spread), true
	case from.After(slot):
		return "restart after " + short(from.Sub(slot)), true
	}
	return "restart", true
}

// Advance moves to the next time after an instant, which must not be before that of the last call,
// and reports whether there is one.
func (t *Time) Advance(after time.Time) bool {
	var now *part
	for _, p := range t.parts {
		if p.advance(after); !p.ends && (now == nil || !p.next.After(now.next)) {
			now = p
		}
	}
	if now == nil {
		return false
	}
	t.Time, t.Field, t.TimeZone = now.next, now.field, now.zone
	if t.Note = note(now.Schedule, now.after.In(now.Zone), now.next); t.Note != "" {
		t.Note += " (" + t.TimeZone + ")"
	}
	t.Action, t.Changes = now.does(t.Time)
	return true
}

// Minute returns the namespace and the minute.
func (t *Time) Minute() string { return t.Namespace + t.Time.UTC().Format(" 2006-01-02T15:04Z") }

// First returns the first n times of schedules after an instant, in their order, fewer if the
// schedules have no more. n is at least 1.
func First(schedules []*Time, after time.Time, n int) []Time {
	out, changes := []Time{}, map[string]int{}
	for _, t := range schedules {
		for i, at := 0, after; i < n && t.Advance(at) && (len(out) < n || !t.Time.After(out[n-1].Time)); i, at = i+1, t.Time {
			if out = append(out, *t); t.Changes {
				changes[t.Minute()]++
			}
		}
		slices.SortStableFunc(out, func(a, b Time) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Namespace, b.Namespace)) })
		out = out[:min(n, len(out))]
	}
	for i := range out {
		if t := &out[i]; t.Changes {
			t.Collisions = changes[t.Minute()] - 1
		}
	}
	return out
}

// note says what a change of the clocks has to do with a run: that the run is the first one after
// it, that its local time does not exist on that day, or that it comes twice. before is the run
// before it.
func note(schedule cron.Schedule, before, run time.Time) string {
	var notes []string
	start, end := run.ZoneBounds()
	for start.After(before) && shift(start) == 0 {
		start, _ = start.Add(-time.Second).ZoneBounds() // After 2037, each year has bounds as well.
	}
	if by := shift(start); by != 0 && start.After(before) {
		direction := "forward"
		if by < 0 {
			direction = "back"
		}
		_, offset := start.Add(-time.Second).Zone()
		old := time.FixedZone("", offset)
		notes = append(notes, fmt.Sprintf("clocks go %s %s at %s", direction, short(by.Abs()), start.In(old).Format("2006-01-02 15:04")))
		if run.Equal(start) && !runsAt(schedule, run, time.FixedZone("", offset+int(by.Seconds()))) {
			nominal, _ := schedule.Next(start.Add(-time.Second), old)
			notes = append(notes, nominal.In(old).Format("15:04")+" does not exist on this day, so it runs right after the change")
		}
	}
	if by := shift(end); by < 0 && end.Sub(run) <= -by {
		notes = append(notes, twice(schedule, run, run.Add(-by), "first"))
	}
	if by := shift(start); by < 0 && run.Sub(start) < -by {
		notes = append(notes, twice(schedule, run, run.Add(by), "second"))
	}
	return strings.Join(notes, "; ")
}

// twice says which of two instants of one local time a run is, and whether there is a run at the
// other one.
func twice(schedule cron.Schedule, run, other time.Time, which string) string {
	text := "it runs the first time only"
	if runsAt(schedule, other, run.Location()) {
		text = "this is the " + which + " of two runs"
	}
	return run.Format("15:04") + " comes twice on this day, and " + text
}

// runsAt reports whether an instant is one of the schedule in a time zone.
func runsAt(schedule cron.Schedule, at time.Time, zone *time.Location) bool {
	next, ok := schedule.Next(at.Add(-time.Second), zone)
	return ok && next.Equal(at)
}

// shift returns by how much the clocks go forward at an instant.
func shift(at time.Time) time.Duration {
	_, before := at.Add(-time.Second).Zone()
	_, after := at.Zone()
	return time.Duration(after-before) * time.Second
}

// short returns a duration without its zeros: 1h, 30m, 1h30m.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
