// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/modelbox-operator/modelbox-operator/api"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/cron"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
)

// plan is a spec in the form that decisions are computed from.
type plan struct {
	times   cron.Times
	uid     types.UID
	windows windows.Windows
	// jitter is the longest time from a scheduled time to its start, deadline is how long
	// after its start a restart may begin; both in whole seconds.
	jitter, deadline time.Duration
}

// planOf returns the plan of an Eru that has its defaults.
func planOf(obj *mtsrev1.Eru) (plan, error) {
	times, open, err := eru.Parse(&obj.Spec)
	return plan{
		times:    times,
		uid:      obj.UID,
		windows:  open,
		jitter:   time.Duration(obj.Spec.JitterSeconds) * time.Second,
		deadline: time.Duration(*obj.Spec.StartingDeadlineSeconds) * time.Second,
	}, err
}

// next returns the first scheduled time after an instant, the zero time if there is none.
func (p plan) next(after time.Time) time.Time {
	slot, _ := p.times.Next(after, p.times.Zone)
	return slot
}

// latest returns the last scheduled time that is not after an instant, the zero time if there
// is none.
func (p plan) latest(at time.Time) time.Time {
	slot, _ := p.times.Prev(at, p.times.Zone)
	return slot
}

// before returns the last scheduled time before an instant, the zero time if there is none.
func (p plan) before(at time.Time) time.Time { return p.latest(at.Add(-time.Second)) }

// contains reports whether an instant is a scheduled time.
func (p plan) contains(slot time.Time) bool { return p.latest(slot).Equal(slot) }

// start returns when the restart is to be written: the scheduled time plus its jitter.
func (p plan) start(slot time.Time) time.Time { return slot.Add(p.delay(slot)) }

// end returns the first instant at which it is too late to restart. The deadline counts in
// whole seconds, so that a deadline of 0 leaves one second.
func (p plan) end(slot time.Time) time.Time {
	return p.start(slot).Add(p.deadline + time.Second)
}

// delay returns the jitter of a scheduled time: always the same for one object and time,
// spread evenly from 0 to the plan's jitter. It ends before the next scheduled time, so that
// the order is kept, however dense the schedule is.
func (p plan) delay(slot time.Time) time.Duration {
	if p.jitter == 0 {
		return 0
	}
	most := p.jitter
	if next := p.next(slot); !next.IsZero() {
		most = min(most, next.Sub(slot)-time.Second)
	}
	sum := fnv.New64a()
	_, _ = sum.Write(binary.BigEndian.AppendUint64([]byte(p.uid), uint64(slot.Unix()))) //nolint:gosec // G115: every bit counts. A hash never errs.
	return time.Duration(sum.Sum64()%uint64(most/time.Second+1)) * time.Second          //nolint:gosec // G115: most is positive, and the rest below it.
}

// due returns the latest scheduled time whose start has come, the zero time if there is none.
func (p plan) due(now time.Time) time.Time {
	slot := p.latest(now)
	if p.start(slot).After(now) {
		return p.before(slot)
	}
	return slot
}

// wake returns when the next decision is due if no watch event comes, the zero time for never.
func (p plan) wake(d decision, now time.Time) time.Time {
	switch {
	case d.next.IsZero():
		return time.Time{}
	case d.wait == nil:
		return p.start(d.next)
	}
	wake := p.end(d.next)
	if by := p.next(d.next); !by.IsZero() && p.start(by).Before(wake) {
		wake = p.start(by)
	}
	if again := now.Add(p.backoff(d.next, now)); d.refused && again.Before(wake) {
		return again
	}
	return wake
}

// backoff returns how long to wait before another attempt at a restart: as long as it has
// been tried for, so that the pauses double, from a second to two minutes.
func (p plan) backoff(slot, now time.Time) time.Duration {
	return min(max(now.Sub(p.start(slot)), time.Second), 2*time.Minute)
}

// restartedAt returns when a Deployment was restarted last, the zero time if that is not
// known.
func restartedAt(deployment *appsv1.Deployment) time.Time {
	if deployment == nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, deployment.Spec.Template.Annotations[api.AnnotationRestartedAt])
	if err != nil {
		return time.Time{}
	}
	return at
}

// state is what the status of an Eru says about its scheduled times.
type state struct {
	// next is the first scheduled time that is not decided, the zero time if there is none:
	// the Eru is new, or was disabled.
	next time.Time
	// last is the latest scheduled time that is decided.
	last time.Time
	// waiting is the reason for which the restart at next has been waiting, "" if it has not.
	waiting string
	// changed says that the spec has another generation than the status.
	changed bool
	// created is when the spec was created, if it has the first generation and there is no
	// status yet; otherwise the zero time.
	created time.Time
}

func stateFromStatus(obj *mtsrev1.Eru) state {
	st := &obj.Status
	s := state{
		next:    ptr.Deref(st.NextScheduleTime, zero).Time,
		last:    ptr.Deref(st.LastScheduleTime, zero).Time,
		changed: st.ObservedGeneration != obj.Generation,
	}
	if st.ObservedGeneration == 0 && obj.Generation <= 1 {
		s.created = obj.CreationTimestamp.Time
	}
	waiting := meta.FindStatusCondition(st.Conditions, status.ConditionReconciling)
	if waiting != nil && waiting.Reason != reasonRestarting && !s.next.IsZero() {
		s.waiting = waiting.Reason
	}
	return s
}

// since returns the instant after which scheduled times count.
func (s state) since(now time.Time) time.Time {
	since := now
	if !s.created.IsZero() {
		since = s.created
	}
	if s.last.After(since) {
		return s.last
	}
	return since
}

// suspend returns the decision for an Eru that restarts nothing: the next scheduled time is
// skipped if it has come, and there is none after it.
func (s state) suspend(reason string, deployment *appsv1.Deployment, now time.Time) decision {
	var d decision
	switch {
	case s.next.IsZero() || s.next.After(now):
	case restartedAt(deployment).Equal(s.next):
		d.add(s.next, mtsrev1.EruRestarted, "")
	default:
		d.add(s.next, mtsrev1.EruSkipped, reason)
	}
	return d
}

// missed returns the outcome for the next scheduled time after its deadline: the reason for
// which it waited, if it did.
func (s state) missed() outcome {
	switch s.waiting {
	case "":
		return outcome{result: mtsrev1.EruSkipped, reason: reasonMissedDeadline}
	case reasonRolloutInProgress:
		return outcome{result: mtsrev1.EruSkipped, reason: s.waiting}
	}
	return outcome{result: mtsrev1.EruResultFailed, reason: s.waiting}
}

// formatTime returns a scheduled time as it is in annotations and in messages.
func formatTime(slot time.Time) string { return slot.UTC().Format(time.RFC3339) }
