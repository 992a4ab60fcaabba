// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
)

// decision is the outcome for the scheduled times of an Eru at an instant.
type decision struct {
	// entries are the outcomes of scheduled times, the oldest first.
	entries []mtsrev1.EruHistory
	// next is the first scheduled time that stays undecided, the zero time if there is none.
	next time.Time
	// restart says that the Deployment is to be restarted for next.
	restart bool
	// wait is why next, which has come, waits; nil if it does not wait.
	wait *mtsrev1.EruPending
}

// add adds the outcome of a scheduled time.
func (d *decision) add(slot time.Time, result mtsrev1.EruResult, reason string) {
	d.entries = append(d.entries, mtsrev1.EruHistory{Slot: metav1.NewTime(slot), Result: result, Reason: reason})
}

// waitFor makes the scheduled time that has come wait.
func (d *decision) waitFor(reason, cause string) {
	d.wait = newPending(d.next, reason, "the restart of "+formatTime(d.next)+cause)
}

// decide returns the decision for an Eru that has its defaults, and the plan that it follows.
// errs are the errors of its spec. It is pure.
func decide(obj *mtsrev1.Eru, errs field.ErrorList, target *appsv1.Deployment, now time.Time) (decision, plan, error) {
	s := stateFromStatus(obj)
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
	return p.decide(s, target, now), p, nil
}

// plan decides by the times of an Eru.
type plan struct{ eru.Plan }

// planOf returns the plan of an Eru that has its defaults.
func planOf(obj *mtsrev1.Eru) (plan, error) {
	p, err := eru.NewPlan(obj)
	return plan{p}, err
}

// next returns the first scheduled time after an instant, the zero time if there is none.
func (p *plan) next(after time.Time) time.Time { return p.Next(after).Time }

// settle adds the outcome of a scheduled time, after which the next one is undecided.
func (p *plan) settle(d *decision, slot time.Time, result mtsrev1.EruResult, reason string) {
	d.add(slot, result, reason)
	d.next = p.next(slot)
}

// decide returns the decision for an enabled Eru. target is its Deployment, nil if there is
// none.
func (p *plan) decide(s state, target *appsv1.Deployment, now time.Time) decision {
	d := p.first(s, target, now)
	due, superseded := p.Due(d.next, now)
	if d.next.IsZero() || due.IsZero() || p.addEarlier(&d, s, restartedAt(target), due) {
		return d
	}
	result, reason := p.outcome(due, s, target, now)
	if reason != reasonMissedDeadline {
		d.addSuperseded(superseded)
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
func (p *plan) first(s state, target *appsv1.Deployment, now time.Time) decision {
	if s.next.IsZero() || s.next.After(now) {
		return decision{next: p.next(s.since(now))}
	}
	latest := p.Latest(now)
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
func (p *plan) addEarlier(d *decision, s state, restarted, due time.Time) (found bool) {
	if s.waiting != "" && d.next.Equal(s.next) && d.next.Before(due) && !restarted.Equal(d.next) {
		result, reason := s.missed()
		p.settle(d, d.next, result, reason)
	}
	if restarted.Before(d.next) || !restarted.Before(due) || !p.Latest(restarted).Equal(restarted) {
		return false
	}
	d.addSuperseded(p.Before(restarted).Time)
	p.settle(d, restarted, mtsrev1.EruRestarted, "")
	return true
}

// addSuperseded adds a scheduled time that a later one supersedes, if it is still undecided. It
// stands for those before it that are not in history.
func (d *decision) addSuperseded(slot time.Time) {
	if !slot.Before(d.next) {
		d.add(slot, mtsrev1.EruSkipped, reasonSuperseded)
	}
}
