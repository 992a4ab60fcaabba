// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
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
	// refused says that it waits for another attempt at the write.
	refused bool
}

// add adds the outcome of a scheduled time.
func (d *decision) add(slot time.Time, result mtsrev1.EruResult, reason string) {
	d.entries = append(d.entries, mtsrev1.EruHistory{Slot: metav1.NewTime(slot), Result: result, Reason: reason})
}

// setRestarted adds the scheduled time that the Deployment was restarted for just now.
func (d *decision) setRestarted(p plan, now time.Time) {
	lateness.Observe(now.Sub(d.next).Seconds())
	d.add(d.next, mtsrev1.EruRestarted, "")
	d.entries[len(d.entries)-1].StartedAt = new(metav1.NewTime(now))
	d.next = p.next(d.next)
}

// skip skips the scheduled time that the Deployment was to be restarted for.
func (d *decision) skip(p plan, reason string) {
	d.add(d.next, mtsrev1.EruSkipped, reason)
	d.next, d.restart = p.next(d.next), false
}

// waitForRetry makes a restart wait that the API server refused, or that was not sent.
func (d *decision) waitForRetry(reason string, err error) {
	wait := status.NewReconciling(reason, fmt.Sprintf("the restart of %s: %s", formatTime(d.next), err))
	d.wait, d.refused = &wait, true
}

// refusalReason returns the reason in the API server's response, such as Forbidden. An
// admission webhook can put a sentence there, which cannot be the reason of a condition.
func refusalReason(err error) string {
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
	if d.next.IsZero() || due.Before(d.next) {
		return d
	}
	if p.addEarlier(&d, s, restartedAt(target), due) {
		return d
	}
	outcome := p.outcome(due, s, target, now)
	if outcome.reason != reasonMissedDeadline {
		p.addSuperseded(&d, due)
	}
	d.next = due
	switch {
	case outcome.result != "":
		d.add(due, outcome.result, outcome.reason)
		d.next = p.next(due)
	case outcome.wait != nil:
		d.wait = outcome.wait
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
		missed := s.missed()
		d.add(d.next, missed.result, missed.reason)
		d.next = p.next(d.next)
	}
	if restarted.Before(d.next) || !restarted.Before(due) || !p.contains(restarted) {
		return false
	}
	p.addSuperseded(d, restarted)
	d.add(restarted, mtsrev1.EruRestarted, "")
	d.next = p.next(restarted)
	return true
}

// addSuperseded adds the scheduled time before a later one, if it is still undecided. It
// stands for those before it that are not in history.
func (p plan) addSuperseded(d *decision, by time.Time) {
	if missed := p.before(by); !missed.Before(d.next) {
		d.add(missed, mtsrev1.EruSkipped, reasonSuperseded)
	}
}

// outcome is what happens at a scheduled time. While result is empty, the restart waits with
// the readiness wait, or is to be made now if that is nil.
type outcome struct {
	result mtsrev1.EruResult
	reason string
	wait   *status.Readiness
}

// outcome returns the outcome of a scheduled time whose start has come.
func (p plan) outcome(slot time.Time, s state, target *appsv1.Deployment, now time.Time) outcome {
	if restartedAt(target).Equal(slot) {
		return outcome{result: mtsrev1.EruRestarted}
	}
	if !p.windows.Open(slot) {
		return outcome{result: mtsrev1.EruSkipped, reason: reasonOutsideWindow}
	}
	if !now.Before(p.end(slot)) {
		if !slot.Equal(s.next) {
			s.waiting = "" // The one that waited was another one.
		}
		return s.missed()
	}
	if reason := skipReason(target, slot); reason != "" {
		return outcome{result: mtsrev1.EruSkipped, reason: reason}
	}
	if !p.windows.Open(now) { // It ended during the jitter, or during another rollout.
		return outcome{result: mtsrev1.EruSkipped, reason: reasonOutsideWindow}
	}
	if !workload.Progress(target).Ready {
		// Without the progress, which would be one write of status for each pod.
		wait := status.NewReconciling(reasonRolloutInProgress, fmt.Sprintf(
			"the restart of %s waits for another rollout of Deployment %q to end", formatTime(slot), target.Name))
		return outcome{wait: &wait}
	}
	return outcome{}
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
