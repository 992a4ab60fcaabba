// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/cron"
)

// plan is a spec in the form that decisions are computed from.
type plan struct {
	schedule cron.Schedule
	zone     *time.Location
	uid      types.UID
	// jitter is the longest time from a scheduled time to its start, deadline is how long
	// after its start a restart may begin; both in whole seconds.
	jitter, deadline time.Duration
}

// planOf returns the plan of an Eru that has its defaults.
func planOf(obj *mtsrev1.Eru) (plan, error) {
	schedule, err := cron.Parse(obj.Spec.Schedule)
	if err != nil {
		return plan{}, fmt.Errorf("parsing spec.schedule: %w", err)
	}
	zone, err := cron.LoadLocation(obj.Spec.TimeZone)
	if err != nil {
		return plan{}, fmt.Errorf("loading spec.timeZone: %w", err)
	}
	return plan{
		schedule: schedule,
		zone:     zone,
		uid:      obj.UID,
		jitter:   time.Duration(obj.Spec.JitterSeconds) * time.Second,
		deadline: time.Duration(*obj.Spec.StartingDeadlineSeconds) * time.Second,
	}, nil
}

// next returns the first scheduled time after an instant, the zero time if there is none.
func (p plan) next(after time.Time) time.Time {
	slot, _ := p.schedule.Next(after, p.zone)
	return slot
}

// latest returns the last scheduled time that is not after an instant, the zero time if there
// is none.
func (p plan) latest(at time.Time) time.Time {
	slot, _ := p.schedule.Prev(at, p.zone)
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
