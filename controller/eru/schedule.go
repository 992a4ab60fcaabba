// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/cron"
)

// plan is a spec as it is acted on.
type plan struct {
	schedule cron.Schedule
	zone     *time.Location
	uid      types.UID
	// jitter is how far after its slot a restart may be put, deadline how late it
	// may start after that; both in whole seconds.
	jitter, deadline time.Duration
}

// planOf reads the spec of an Eru that has its defaults.
func planOf(obj *mtsrev1.Eru) (plan, error) {
	schedule, err := cron.Parse(obj.Spec.Schedule)
	if err != nil {
		return plan{}, fmt.Errorf("reading spec.schedule: %w", err)
	}
	zone, err := cron.LoadLocation(obj.Spec.TimeZone)
	if err != nil {
		return plan{}, fmt.Errorf("reading spec.timeZone: %w", err)
	}
	return plan{
		schedule: schedule,
		zone:     zone,
		uid:      obj.UID,
		jitter:   time.Duration(obj.Spec.JitterSeconds) * time.Second,
		deadline: time.Duration(*obj.Spec.StartingDeadlineSeconds) * time.Second,
	}, nil
}

// next is the first slot after an instant, the zero time if there is none.
func (p plan) next(after time.Time) time.Time {
	slot, _ := p.schedule.Next(after, p.zone)
	return slot
}

// latest is the last slot that is not after an instant, the zero time if there is
// none.
func (p plan) latest(at time.Time) time.Time {
	slot, _ := p.schedule.Prev(at, p.zone)
	return slot
}

// before is the last slot before an instant, the zero time if there is none.
func (p plan) before(at time.Time) time.Time { return p.latest(at.Add(-time.Second)) }

func (p plan) names(slot time.Time) bool { return p.latest(slot).Equal(slot) }

// start is when a slot's restart is to be written: its time plus its jitter.
func (p plan) start(slot time.Time) time.Time { return slot.Add(p.delay(slot)) }

// end is the first instant at which it is too late to start. The deadline holds
// for whole seconds, so that a deadline of 0 leaves one.
func (p plan) end(slot time.Time) time.Time {
	return p.start(slot).Add(p.deadline + time.Second)
}

// delay is a slot's jitter: always the same for one object and slot, spread evenly
// over 0 to the plan's. It ends before the next slot, so that slots keep their
// order, however dense.
func (p plan) delay(slot time.Time) time.Duration {
	if p.jitter == 0 {
		return 0
	}
	most := p.jitter
	if next := p.next(slot); !next.IsZero() {
		most = min(most, next.Sub(slot)-time.Second)
	}
	sum := fnv.New64a()
	_, _ = sum.Write(binary.BigEndian.AppendUint64([]byte(p.uid), uint64(slot.Unix()))) // A hash never errs.
	return time.Duration(sum.Sum64()%uint64(most/time.Second+1)) * time.Second
}

// due is the latest slot whose start has come, the zero time if there is none.
func (p plan) due(now time.Time) time.Time {
	slot := p.latest(now)
	if p.start(slot).After(now) {
		return p.before(slot)
	}
	return slot
}

// decision is what comes of an Eru's slots at a moment.
type decision struct {
	// entries say what came of slots, oldest first.
	entries []mtsrev1.EruHistory
	// next is the first slot that stays undecided, the zero time if there is none.
	next time.Time
	// restart says that the Deployment is to be restarted for next.
	restart bool
	// wait says why next waits although it is due, nil if it does not.
	wait *status.Verdict
	// refused says that it waits for another attempt at the write.
	refused bool
}

func (d *decision) settle(slot time.Time, result mtsrev1.EruResult, reason string) {
	d.entries = append(d.entries, mtsrev1.EruHistory{Slot: metav1.NewTime(slot), Result: result, Reason: reason})
}

// decide says what comes of the slots of an enabled Eru. target is its Deployment,
// nil if there is none.
func (p plan) decide(m memory, target *appsv1.Deployment, now time.Time) decision {
	d := p.open(m, target, now)
	due := p.due(now)
	if d.next.IsZero() || due.Before(d.next) {
		return d
	}
	if p.pass(&d, m, restartedAt(target), due) {
		return d
	}
	outcome := p.judge(due, m, target, now)
	if outcome.reason != reasonMissedDeadline {
		p.supersede(&d, due)
	}
	d.next = due
	switch {
	case outcome.result != "":
		d.settle(due, outcome.result, outcome.reason)
		d.next = p.next(due)
	case outcome.wait != nil:
		d.wait = outcome.wait
	default:
		d.restart = true
	}
	return d
}

// open finds the first slot that is to be decided on: the announced one, if the
// spec still asks for it, and otherwise the first after the moment from which the
// spec holds.
func (p plan) open(m memory, target *appsv1.Deployment, now time.Time) decision {
	if m.announced.IsZero() || m.changed && m.announced.After(now) {
		return decision{next: p.next(m.since(now))}
	}
	latest := p.latest(now)
	if m.announced.After(now) || latest.Equal(m.announced) || latest.After(m.announced) && !m.changed {
		return decision{next: m.announced}
	}
	d := m.halt(reasonSpecChanged, target, now)
	d.next = p.next(m.since(now))
	return d
}

// pass settles what is known of slots before the one that is due: the announced
// one, if it has been waiting, and one that the Deployment was restarted for while
// status could not be written. It reports the latter, which must be in status
// before another restart takes the place of what tells of it.
func (p plan) pass(d *decision, m memory, restarted, due time.Time) (found bool) {
	if m.waiting != "" && d.next.Equal(m.announced) && d.next.Before(due) && !restarted.Equal(d.next) {
		late := m.late()
		d.settle(d.next, late.result, late.reason)
		d.next = p.next(d.next)
	}
	if restarted.Before(d.next) || !restarted.Before(due) || !p.names(restarted) {
		return false
	}
	p.supersede(d, restarted)
	d.settle(restarted, mtsrev1.EruRestarted, "")
	d.next = p.next(restarted)
	return true
}

// supersede settles the slot before one that has overtaken it, if that is still
// undecided. It stands for those before it that no entry names.
func (p plan) supersede(d *decision, by time.Time) {
	if missed := p.before(by); !missed.Before(d.next) {
		d.settle(missed, mtsrev1.EruSkipped, reasonSuperseded)
	}
}

// wake is when there is something to decide on again if nothing else happens, the
// zero time for never.
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

// backoff is how long to wait with another attempt at a slot: as long as it has
// been tried for, so that the pauses double, within a second and two minutes.
func (p plan) backoff(slot, now time.Time) time.Duration {
	return min(max(now.Sub(p.start(slot)), time.Second), 2*time.Minute)
}
