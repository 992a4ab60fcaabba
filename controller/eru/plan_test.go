// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/api"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
)

// day is the date of the times in the tables.
const day = "2026-03-02"

// at returns a time on that day, or the zero time for "".
func at(clock string) time.Time {
	if clock == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.DateTime, day+" "+clock)
	if err != nil {
		panic(err)
	}
	return t
}

func short(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	if t.Format(time.DateOnly) != day {
		return t.UTC().Format(time.RFC3339)
	}
	return t.UTC().Format(time.TimeOnly)
}

// text returns a decision as a line of text.
func text(d decision) string {
	var parts []string
	for _, entry := range d.entries {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", short(entry.Slot.Time), entry.Result, entry.Reason)))
	}
	switch {
	case d.restart:
		parts = append(parts, "restart "+short(d.next))
	case d.wait != nil:
		parts = append(parts, "wait "+short(d.next)+" "+d.wait.Reason)
	default:
		parts = append(parts, "next "+short(d.next))
	}
	return strings.Join(parts, ", ")
}

// hourlyEru returns an enabled Eru, created at midnight, that restarts Deployment "web"
// at each full hour.
func hourlyEru(change ...func(*mtsrev1.Eru)) *mtsrev1.Eru {
	obj := &mtsrev1.Eru{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web", UID: "eru-uid", Generation: 1, CreationTimestamp: metav1.NewTime(at("00:00:00")),
	}}
	obj.Spec.Enabled, obj.Spec.Schedule = true, "0 * * * *"
	eru.Default(obj)
	for _, c := range change {
		c(obj)
	}
	return obj
}

func planFor(tb testing.TB, obj *mtsrev1.Eru) *plan {
	tb.Helper()
	p, err := planOf(obj)
	if err != nil {
		tb.Fatal(err)
	}
	return &p
}

// web returns a Deployment with three replicas whose rollout is complete, created at
// midnight.
func web(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web", UID: "web-uid", Generation: 1, CreationTimestamp: metav1.NewTime(at("00:00:00")),
	}}
	d.Spec.Replicas = new(int32(3))
	d.Spec.Template.Annotations = map[string]string{"team": "search"}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "server:1"}}
	rolledOut(d)
	for _, c := range change {
		c(d)
	}
	return d
}

// rolledOut sets the status that the Deployment controller writes after a rollout.
func rolledOut(d *appsv1.Deployment) {
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
	}
}

func rolling(d *appsv1.Deployment)  { d.Status.UpdatedReplicas = 1 }
func paused(d *appsv1.Deployment)   { d.Spec.Paused = true }
func deleting(d *appsv1.Deployment) { d.DeletionTimestamp = new(metav1.NewTime(at("11:00:00"))) }
func empty(d *appsv1.Deployment)    { d.Spec.Replicas = new(int32(0)); rolledOut(d) }

func restartedBy(value string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Annotations[api.AnnotationRestartedAt] = value }
}

func restartedFor(clock string) func(*appsv1.Deployment) { return restartedBy(formatTime(at(clock))) }

func createdAt(clock string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.CreationTimestamp = metav1.NewTime(at(clock)) }
}

// decidedBefore returns the state of an Eru whose scheduled times before the given one are
// decided.
func decidedBefore(clock string) state {
	return state{next: at(clock), last: at(clock).Add(-time.Hour)}
}

func (s state) waitingFor(reason string) state { s.waiting = reason; return s }
func (s state) withNewSpec() state             { s.changed = true; return s }

// decided is a decision of an hourly Eru.
type decided struct {
	name   string
	now    string
	state  state
	target *appsv1.Deployment
	want   string
}

func checkDecisions(t *testing.T, all []decided) {
	t.Helper()
	for _, test := range all {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := text(planFor(t, hourlyEru()).decide(test.state, test.target, at(test.now))); got != test.want {
				t.Errorf("it decides %q, want %q", got, test.want)
			}
		})
	}
}

func TestDecideOnTheAnnouncedSlot(t *testing.T) {
	checkDecisions(t, []decided{
		{"before it", "11:59:59", decidedBefore("12:00:00"), web(), "next 12:00:00"},
		{"at it", "12:00:00", decidedBefore("12:00:00"), web(), "restart 12:00:00"},
		{"after it", "12:00:01", decidedBefore("12:00:00"), web(), "restart 12:00:00"},
		{"in the last second of the deadline", "12:10:00", decidedBefore("12:00:00"), web(), "restart 12:00:00"},
		{"after the deadline", "12:10:01", decidedBefore("12:00:00"), web(), "12:00:00 Skipped MissedDeadline, next 13:00:00"},
		{"restarted before", "12:00:00", decidedBefore("12:00:00"), web(restartedFor("11:00:00")), "restart 12:00:00"},
		{"restarted by a user, with another zone", "12:00:00", decidedBefore("12:00:00"), web(restartedBy("2026-03-02T13:59:59+02:00")), "restart 12:00:00"},
		{"an invalid value", "12:00:00", decidedBefore("12:00:00"), web(restartedBy("yesterday")), "restart 12:00:00"},
		{"restarted for it, and status was lost", "12:00:05", decidedBefore("12:00:00"), web(restartedFor("12:00:00")), "12:00:00 Restarted, next 13:00:00"},
		{"restarted for it, paused and late", "12:30:00", decidedBefore("12:00:00"), web(restartedFor("12:00:00"), paused), "12:00:00 Restarted, next 13:00:00"},
		{"restarted after it", "12:00:05", decidedBefore("12:00:00"), web(restartedFor("12:00:01")), "12:00:00 Skipped AlreadyRestarted, next 13:00:00"},
		{"restarted in the future", "12:00:05", decidedBefore("12:00:00"), web(restartedBy("2030-01-01T00:00:00Z")), "12:00:00 Skipped AlreadyRestarted, next 13:00:00"},
		{"no Deployment", "12:00:00", decidedBefore("12:00:00"), nil, "12:00:00 Skipped TargetNotFound, next 13:00:00"},
		{"no Deployment, and late", "12:30:00", decidedBefore("12:00:00"), nil, "12:00:00 Skipped MissedDeadline, next 13:00:00"},
		{"a Deployment being deleted", "12:00:00", decidedBefore("12:00:00"), web(deleting), "12:00:00 Skipped TargetTerminating, next 13:00:00"},
		{"a Deployment created at it", "12:00:03", decidedBefore("12:00:00"), web(createdAt("12:00:00")), "restart 12:00:00"},
		{"a Deployment created after it", "12:00:03", decidedBefore("12:00:00"), web(createdAt("12:00:01")), "12:00:00 Skipped TargetIsNewer, next 13:00:00"},
		{"paused", "12:00:00", decidedBefore("12:00:00"), web(paused, rolling), "12:00:00 Skipped DeploymentPaused, next 13:00:00"},
		{"no pods", "12:00:00", decidedBefore("12:00:00"), web(empty), "12:00:00 Skipped NoReplicas, next 13:00:00"},
		{"a count that the server has not filled in is 1", "12:00:00", decidedBefore("12:00:00"), web(func(d *appsv1.Deployment) {
			d.Spec.Replicas = new(int32(1))
			rolledOut(d)
			d.Spec.Replicas = nil
		}), "restart 12:00:00"},
		{"a rollout", "12:00:00", decidedBefore("12:00:00"), web(rolling), "wait 12:00:00 RolloutInProgress"},
		{"a rollout that is stuck", "12:00:00", decidedBefore("12:00:00"), web(func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Reason: "ProgressDeadlineExceeded"}}
		}), "wait 12:00:00 RolloutInProgress"},
		{"a change that the cluster has not seen", "12:00:00", decidedBefore("12:00:00"), web(func(d *appsv1.Deployment) { d.Generation = 2 }), "wait 12:00:00 RolloutInProgress"},
		{"the rollout ended", "12:09:00", decidedBefore("12:00:00").waitingFor(reasonRolloutInProgress), web(), "restart 12:00:00"},
		{"the rollout did not end", "12:10:01", decidedBefore("12:00:00").waitingFor(reasonRolloutInProgress), web(rolling), "12:00:00 Skipped RolloutInProgress, next 13:00:00"},
		{"refused until the deadline", "12:10:01", decidedBefore("12:00:00").waitingFor("Forbidden"), web(), "12:00:00 Failed Forbidden, next 13:00:00"},
		{"refused, and paused now", "12:09:00", decidedBefore("12:00:00").waitingFor("Forbidden"), web(paused), "12:00:00 Skipped DeploymentPaused, next 13:00:00"},
	})
}

func TestDecideWhereSeveralSlotsHavePassed(t *testing.T) {
	checkDecisions(t, []decided{
		{"the latest is worked on, the one before it is named", "12:00:00", decidedBefore("03:00:00"), web(), "11:00:00 Skipped Superseded, restart 12:00:00"},
		{"two are both named", "12:00:00", decidedBefore("11:00:00"), web(), "11:00:00 Skipped Superseded, restart 12:00:00"},
		{"the latest is late and stands for all", "12:30:00", decidedBefore("03:00:00"), web(), "12:00:00 Skipped MissedDeadline, next 13:00:00"},
		{"the latest has to wait", "12:00:00", decidedBefore("03:00:00"), web(rolling), "11:00:00 Skipped Superseded, wait 12:00:00 RolloutInProgress"},
		{"the latest may not be", "12:00:00", decidedBefore("11:00:00"), web(paused), "11:00:00 Skipped Superseded, 12:00:00 Skipped DeploymentPaused, next 13:00:00"},
		{"one waited, the next overtakes it", "12:00:00", decidedBefore("11:00:00").waitingFor(reasonRolloutInProgress), web(rolling),
			"11:00:00 Skipped RolloutInProgress, wait 12:00:00 RolloutInProgress"},
		{"one was refused, the next overtakes it", "12:00:00", decidedBefore("11:00:00").waitingFor("Invalid"), web(), "11:00:00 Failed Invalid, restart 12:00:00"},
		{"one waited, then there was a downtime", "12:00:00", decidedBefore("03:00:00").waitingFor(reasonRolloutInProgress), web(),
			"03:00:00 Skipped RolloutInProgress, 11:00:00 Skipped Superseded, restart 12:00:00"},
		{"one waited, the latest is late", "12:30:00", decidedBefore("03:00:00").waitingFor("Forbidden"), web(),
			"03:00:00 Failed Forbidden, 12:00:00 Skipped MissedDeadline, next 13:00:00"},
		{"the first was restarted, and status was lost", "12:00:00", decidedBefore("03:00:00"), web(restartedFor("03:00:00")),
			"03:00:00 Restarted, next 04:00:00"},
		{"that one had been waiting", "12:00:00", decidedBefore("11:00:00").waitingFor(reasonRolloutInProgress), web(restartedFor("11:00:00")),
			"11:00:00 Restarted, next 12:00:00"},
		{"a later one was restarted, and status was lost", "12:00:00", decidedBefore("03:00:00"), web(restartedFor("08:00:00")),
			"07:00:00 Skipped Superseded, 08:00:00 Restarted, next 09:00:00"},
		{"one waited, a later one was restarted", "12:00:00", decidedBefore("03:00:00").waitingFor(reasonRolloutInProgress), web(restartedFor("08:00:00")),
			"03:00:00 Skipped RolloutInProgress, 07:00:00 Skipped Superseded, 08:00:00 Restarted, next 09:00:00"},
		{"the remaining ones after that", "12:00:00", decidedBefore("09:00:00"), web(restartedFor("08:00:00")), "11:00:00 Skipped Superseded, restart 12:00:00"},
		{"the latest was restarted", "12:05:00", decidedBefore("10:00:00"), web(restartedFor("12:00:00")),
			"11:00:00 Skipped Superseded, 12:00:00 Restarted, next 13:00:00"},
		{"a user restarted it between two scheduled times", "12:00:00", decidedBefore("10:00:00"), web(restartedFor("10:30:00")),
			"11:00:00 Skipped Superseded, restart 12:00:00"},
	})
}

func TestDecideForNewSpecs(t *testing.T) {
	created := state{created: at("09:30:00")}
	for _, test := range []struct {
		name     string
		schedule string
		now      string
		state    state
		target   *appsv1.Deployment
		want     string
	}{
		{"created just now", "", "09:30:00", created, web(), "next 10:00:00"},
		{"created on a slot", "", "09:00:00", state{created: at("09:00:00")}, web(), "next 10:00:00"},
		{"created during a downtime", "", "10:05:00", created, web(), "restart 10:00:00"},
		{"created long ago", "", "12:30:00", created, web(), "12:00:00 Skipped MissedDeadline, next 13:00:00"},
		{"created by a clock ahead of this one", "", "09:29:00", created, web(), "next 10:00:00"},
		{"enabled just after a slot", "", "12:00:01", state{changed: true, last: at("03:00:00")}, web(), "next 13:00:00"},
		{"enabled, and the clock went back", "", "12:00:01", state{changed: true, last: at("15:00:00")}, web(), "next 16:00:00"},
		{"status was deleted", "", "12:00:01", state{}, web(), "next 13:00:00"},
		{"a new schedule, before the announced slot", "30 * * * *", "11:45:00", decidedBefore("12:00:00").withNewSpec(), web(), "next 12:30:00"},
		{"a new spec with the same scheduled time", "", "12:00:01", decidedBefore("12:00:00").withNewSpec(), web(), "restart 12:00:00"},
		{"a new spec while it waits", "", "12:00:01", decidedBefore("12:00:00").withNewSpec().waitingFor(reasonRolloutInProgress), web(rolling), "wait 12:00:00 RolloutInProgress"},
		{"a new schedule without it", "30 * * * *", "12:00:01", decidedBefore("12:00:00").withNewSpec(), web(), "12:00:00 Skipped SpecChanged, next 12:30:00"},
		{"a new schedule without it, which was restarted for", "30 * * * *", "12:00:01", decidedBefore("12:00:00").withNewSpec(), web(restartedFor("12:00:00")),
			"12:00:00 Restarted, next 12:30:00"},
		{"a denser schedule, seen late", "*/10 * * * *", "12:11:00", decidedBefore("12:00:00").withNewSpec(), web(), "12:00:00 Skipped SpecChanged, next 12:20:00"},
		{"a new spec after several slots", "", "12:00:01", decidedBefore("11:00:00").withNewSpec(), web(), "11:00:00 Skipped SpecChanged, next 13:00:00"},
		{"rules of a zone that no longer name it", "30 * * * *", "12:00:01", decidedBefore("12:00:00"), web(), "12:00:00 Skipped SpecChanged, next 12:30:00"},
		{"the end of the calendar", "0 0 1 1 *", "12:00:00", state{changed: true, last: time.Date(9999, 6, 1, 0, 0, 0, 0, time.UTC)}, web(), "next never"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := planFor(t, hourlyEru(func(o *mtsrev1.Eru) { o.Spec.Schedule = cmp.Or(test.schedule, o.Spec.Schedule) }))
			if got := text(p.decide(test.state, test.target, at(test.now))); got != test.want {
				t.Errorf("it decides %q, want %q", got, test.want)
			}
		})
	}
}

func TestSuspend(t *testing.T) {
	for _, test := range []struct {
		name   string
		state  state
		target *appsv1.Deployment
		want   string
	}{
		{"nothing was announced", state{}, web(), "next never"},
		{"the slot lies ahead", decidedBefore("13:00:00"), web(), "next never"},
		{"the slot has come", decidedBefore("12:00:00"), web(), "12:00:00 Skipped Disabled, next never"},
		{"the slot has come, and nothing is there", decidedBefore("12:00:00"), nil, "12:00:00 Skipped Disabled, next never"},
		{"the slot was restarted for", decidedBefore("12:00:00"), web(restartedFor("12:00:00")), "12:00:00 Restarted, next never"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := text(test.state.suspend(reasonDisabled, test.target, at("12:05:00"))); got != test.want {
				t.Errorf("it decides %q, want %q", got, test.want)
			}
		})
	}
}

func TestWake(t *testing.T) {
	wait, refused := &mtsrev1.EruPending{Reason: reasonRolloutInProgress}, &mtsrev1.EruPending{Reason: "Forbidden"}
	for _, test := range []struct {
		name     string
		deadline int64
		decision decision
		want     string
	}{
		{"nothing lies ahead", 600, decision{}, "never"},
		{"a slot lies ahead", 600, decision{next: at("13:00:00")}, "13:00:00"},
		{"a slot waits, and its deadline comes", 600, decision{next: at("12:00:00"), wait: wait}, "12:10:01"},
		{"a slot waits, and the next one comes", 7200, decision{next: at("12:00:00"), wait: wait}, "13:00:00"},
		{"a refused one is tried again after as long as it was tried for", 600, decision{next: at("12:00:00"), wait: refused}, "12:02:00"},
		{"but not after its deadline", 70, decision{next: at("12:00:00"), wait: refused}, "12:01:11"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := planFor(t, hourlyEru(func(o *mtsrev1.Eru) { o.Spec.StartingDeadlineSeconds = &test.deadline }))
			if got := short(p.wake(test.decision, at("12:01:00"))); got != test.want {
				t.Errorf("it wakes at %s, want %s", got, test.want)
			}
		})
	}
}

func TestBackoffDoublesWithinBounds(t *testing.T) {
	p, slot := planFor(t, hourlyEru()), at("12:00:00")
	now, pauses := slot, []time.Duration{}
	for now.Before(p.End(slot)) {
		pause := p.backoff(slot, now)
		pauses = append(pauses, pause)
		now = now.Add(pause)
	}
	if want := []time.Duration{1e9, 1e9, 2e9, 4e9, 8e9, 16e9, 32e9, 64e9, 120e9, 120e9, 120e9, 120e9}; fmt.Sprint(pauses) != fmt.Sprint(want) {
		t.Errorf("it pauses %v, want %v", pauses, want)
	}
}

// The deadline counts from the start after the jitter, so the jitter does not reduce it.
func TestDeadlineCountsFromTheJitteredStart(t *testing.T) {
	p := planFor(t, hourlyEru(func(o *mtsrev1.Eru) { o.Spec.JitterSeconds, o.Spec.StartingDeadlineSeconds = 1800, new(int64(0)) }))
	start := p.Start(at("12:00:00"))
	if start.Equal(at("12:00:00")) {
		t.Fatal("this scheduled time has no jitter: choose another uid")
	}
	for _, test := range []struct {
		now  time.Time
		want string
	}{
		{at("12:00:00"), "next 12:00:00"},
		{start.Add(-time.Nanosecond), "next 12:00:00"},
		{start, "restart 12:00:00"},
		{start.Add(time.Second - 1), "restart 12:00:00"},
		{start.Add(time.Second), "12:00:00 Skipped MissedDeadline, next 13:00:00"},
	} {
		if got := text(p.decide(decidedBefore("12:00:00"), web(), test.now)); got != test.want {
			t.Errorf("at %v it decides %q, want %q", test.now, got, test.want)
		}
	}
}
