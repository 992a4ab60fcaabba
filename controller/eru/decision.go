// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/modelbox-operator/modelbox-operator/api"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/cron"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
)

// Why a scheduled time passed without a restart, beside workload.ReasonTargetNotFound. For one that the API server refused it is
// the reason in the API server's response, such as Forbidden.
const (
	// reasonMissedDeadline: the controller did not run in time.
	reasonMissedDeadline = "MissedDeadline"
	// reasonSuperseded: the next scheduled time came before this one was decided.
	reasonSuperseded = "Superseded"
	// reasonOutsideWindow: no window was open, at that time or when it was to be restarted.
	reasonOutsideWindow = "OutsideWindow"
	// reasonSpecChanged: the spec was changed and does not contain this time any more, or it
	// is unknown whether it did at that time.
	reasonSpecChanged = "SpecChanged"
	// reasonDisabled: spec.enabled became false before it was decided.
	reasonDisabled = "Disabled"
	// reasonTargetIsNewer: the Deployment was created after it.
	reasonTargetIsNewer = "TargetIsNewer"
	// reasonTargetTerminating: the Deployment was being deleted.
	reasonTargetTerminating = "TargetTerminating"
	// reasonAlreadyRestarted: the Deployment was restarted after it.
	reasonAlreadyRestarted = "AlreadyRestarted"
	// reasonDeploymentPaused: the Deployment was paused.
	reasonDeploymentPaused = "DeploymentPaused"
	// reasonNoReplicas: the Deployment had no pods to restart.
	reasonNoReplicas = "NoReplicas"
	// reasonRefused: the API server refused the restart without a reason.
	reasonRefused = "Refused"
	// reasonRolloutInProgress: another rollout did not end in time.
	reasonRolloutInProgress = "RolloutInProgress"
)

// decision is the outcome for the scheduled times of an Eru at an instant.
type decision struct {
	// entries are the outcomes of scheduled times, the oldest first.
	entries []mtsrev1.EruHistory
	// next is the first scheduled time that stays undecided, the zero time if there is none.
	next time.Time
	// restart says that the Deployment is to be restarted for next.
	restart bool
	// wait is the readiness if next has come and waits, nil if it does not wait.
	wait *status.Readiness
	// outside says that next is outside of the windows, so that it will be skipped.
	outside bool
}

// add adds the outcome of a scheduled time.
func (d *decision) add(slot time.Time, result mtsrev1.EruResult, reason string) {
	d.entries = append(d.entries, mtsrev1.EruHistory{Slot: metav1.NewTime(slot), Result: result, Reason: reason})
}

// settle adds the outcome of a scheduled time, after which the next one is undecided.
func (p plan) settle(d *decision, slot time.Time, result mtsrev1.EruResult, reason string) {
	d.add(slot, result, reason)
	d.next = p.next(slot)
}

// waitFor makes the scheduled time that has come wait.
func (d *decision) waitFor(reason, cause string) {
	d.wait = new(status.NewReconciling(reason, "the restart of "+formatTime(d.next)+cause))
}

// refusalReason returns the reason for which the restart waits after an error, "" if the error is to be returned: a write that
// was not sent, or the reason in the API server's response, such as Forbidden. An admission webhook can put a sentence there,
// which cannot be the reason of a condition.
func refusalReason(err error) string {
	if _, contested := errors.AsType[*limit.ContestedError](err); contested {
		return status.ReasonContested
	}
	if _, refused := errors.AsType[*apply.RefusedError](err); !refused && !apierrors.IsForbidden(err) {
		return ""
	}
	reason := string(apierrors.ReasonForError(err))
	letter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
	if reason == "" || len(reason) > 64 || strings.TrimFunc(reason, letter) != "" {
		return reasonRefused
	}
	return reason
}

// decide returns the decision for an Eru that has its defaults, and the plan that it follows.
// errs are the errors of its spec. It is pure.
func decide(obj *mtsrev1.Eru, errs field.ErrorList, s state, target *appsv1.Deployment, now time.Time) (decision, plan, error) {
	switch {
	case len(errs) > 0:
		return s.suspend(status.ReasonInvalidSpec, target, now), plan{}, nil
	case !obj.Spec.Enabled:
		return s.suspend(reasonDisabled, target, now), plan{}, nil
	}
	p, err := planOf(obj)
	if err != nil {
		return decision{}, plan{}, err
	}
	d := p.decide(s, target, now)
	d.outside = !d.next.IsZero() && !p.windows.Open(d.next)
	return d, p, nil
}

// decide returns the decision for an enabled Eru. target is its Deployment, nil if there is
// none.
func (p plan) decide(s state, target *appsv1.Deployment, now time.Time) decision {
	d := p.first(s, target, now)
	due := p.due(now)
	if d.next.IsZero() || due.Before(d.next) || p.addEarlier(&d, s, restartedAt(target), due) {
		return d
	}
	result, reason := p.outcome(due, s, target, now)
	if reason != reasonMissedDeadline {
		p.addSuperseded(&d, due)
	}
	d.next = due
	switch {
	case result != "":
		p.settle(&d, due, result, reason)
	case reason != "":
		// Without the progress, which would be one write of status for each pod.
		d.waitFor(reason, fmt.Sprintf(" waits for another rollout of Deployment %q to end", target.Name))
	default:
		d.restart = true
	}
	return d
}

// first returns a decision with the first scheduled time that is to be decided: the one in
// status, if it has come and the spec still contains it, and otherwise the first one after the
// instant from which the spec counts. A later time in status is not used: another client may
// have written it, or the clock was ahead.
func (p plan) first(s state, target *appsv1.Deployment, now time.Time) decision {
	if s.next.IsZero() || s.next.After(now) {
		return decision{next: p.next(s.since(now))}
	}
	latest := p.latest(now)
	if latest.Equal(s.next) || latest.After(s.next) && !s.changed {
		return decision{next: s.next}
	}
	d := s.suspend(reasonSpecChanged, target, now)
	d.next = p.next(s.since(now))
	return d
}

// addEarlier adds the outcomes that are known of scheduled times before the one that is due:
// the one in status, if it has been waiting, and one that the Deployment was restarted for
// while status could not be written. It reports whether there is the latter, which must be
// in status before another restart overwrites the annotation that proves it.
func (p plan) addEarlier(d *decision, s state, restarted, due time.Time) (found bool) {
	if s.waiting != "" && d.next.Equal(s.next) && d.next.Before(due) && !restarted.Equal(d.next) {
		result, reason := s.missed()
		p.settle(d, d.next, result, reason)
	}
	if restarted.Before(d.next) || !restarted.Before(due) || !p.latest(restarted).Equal(restarted) {
		return false
	}
	p.addSuperseded(d, restarted)
	p.settle(d, restarted, mtsrev1.EruRestarted, "")
	return true
}

// addSuperseded adds the scheduled time before a later one, if it is still undecided. It
// stands for those before it that are not in history.
func (p plan) addSuperseded(d *decision, by time.Time) {
	if missed := p.before(by); !missed.Before(d.next) {
		d.add(missed, mtsrev1.EruSkipped, reasonSuperseded)
	}
}

// outcome returns the outcome of a scheduled time whose start has come. Without a result, the restart waits for
// the reason, or is to be made now if there is none.
func (p plan) outcome(slot time.Time, s state, target *appsv1.Deployment, now time.Time) (result mtsrev1.EruResult, reason string) {
	if restartedAt(target).Equal(slot) {
		return mtsrev1.EruRestarted, ""
	}
	if !p.windows.Open(slot) {
		return mtsrev1.EruSkipped, reasonOutsideWindow
	}
	if !now.Before(p.end(slot)) {
		if !slot.Equal(s.next) {
			s.waiting = "" // The one that waited was another one.
		}
		return s.missed()
	}
	if reason := skipReason(target, slot); reason != "" {
		return mtsrev1.EruSkipped, reason
	}
	if !p.windows.Open(now) { // It ended during the jitter, or during another rollout.
		return mtsrev1.EruSkipped, reasonOutsideWindow
	}
	if !workload.Progress(target).Ready {
		return "", reasonRolloutInProgress
	}
	return "", ""
}

// skipReason returns the reason for which a Deployment must not be restarted for a scheduled
// time, "" if it may be. None of the reasons disappears by waiting.
func skipReason(target *appsv1.Deployment, slot time.Time) string {
	switch {
	case target == nil:
		return workload.ReasonTargetNotFound
	case target.DeletionTimestamp != nil:
		return reasonTargetTerminating
	case target.CreationTimestamp.After(slot):
		return reasonTargetIsNewer
	case restartedAt(target).After(slot):
		return reasonAlreadyRestarted
	case target.Spec.Paused:
		return reasonDeploymentPaused
	case ptr.Deref(target.Spec.Replicas, 1) == 0:
		return reasonNoReplicas
	}
	return ""
}

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
	if again := now.Add(p.backoff(d.next, now)); d.wait.Reason != reasonRolloutInProgress && again.Before(wake) {
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
func (s state) missed() (result mtsrev1.EruResult, reason string) {
	switch s.waiting {
	case "":
		return mtsrev1.EruSkipped, reasonMissedDeadline
	case reasonRolloutInProgress:
		return mtsrev1.EruSkipped, s.waiting
	}
	return mtsrev1.EruResultFailed, s.waiting
}

// formatTime returns a scheduled time as it is in annotations and in messages.
func formatTime(slot time.Time) string { return slot.UTC().Format(time.RFC3339) }
