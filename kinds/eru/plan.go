// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/cron"
	"github.com/modelbox-operator/modelbox-operator/kinds/schedules"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
)

// The reasons for which a scheduled time will pass without a restart that are known before it.
const (
	// ReasonOutsideWindow: no window is open from that time until the restart.
	ReasonOutsideWindow = "OutsideWindow"
	// ReasonAlreadyRestarted: the Deployment was restarted after it.
	ReasonAlreadyRestarted = "AlreadyRestarted"
)

// Plan is the spec of an Eru in the form in which its restarts are computed: its scheduled times,
// when each of them starts, and whether it may. Warnings, status and the command announce from it
// what the controller then does.
type Plan struct {
	schedules.Times
	windows windows.Windows
	uid     types.UID
	// jitter is the longest time from a scheduled time to its start, deadline is how long
	// after its start a restart may begin; both in whole seconds.
	jitter, deadline time.Duration
}

// NewPlan returns the plan of an Eru that has its defaults. An error is one that Validate returns
// as well.
func NewPlan(obj *mtsrev1.Eru) (Plan, error) {
	times, err := cron.ParseIn(obj.Spec.Schedule, obj.Spec.TimeZone)
	open, invalid := windows.Parse(obj.Spec.Windows)
	p := Plan{Times: schedules.Times{times}, windows: open, uid: obj.UID, jitter: time.Duration(obj.Spec.JitterSeconds) * time.Second}
	if deadline := obj.Spec.StartingDeadlineSeconds; deadline != nil {
		p.deadline = time.Duration(*deadline) * time.Second
	}
	return p, errors.Join(err, invalid)
}

// Due is Times.Due with the jitter.
func (p *Plan) Due(open, now time.Time) (due, superseded time.Time) {
	slot, before := p.Times.Due(open, now, p.Delay)
	return slot.Time, before.Time
}

// Start returns when the restart of a scheduled time starts: that time plus its jitter.
func (p *Plan) Start(slot time.Time) time.Time { return slot.Add(p.Delay(slot)) }

// End returns the first instant at which it is too late to restart. The deadline counts in
// whole seconds, so that a deadline of 0 leaves one second.
func (p *Plan) End(slot time.Time) time.Time {
	return p.Start(slot).Add(p.deadline + time.Second)
}

// Delay returns the jitter of a scheduled time: always the same for one object and time,
// spread evenly from 0 to the plan's jitter. It ends before the next scheduled time, so that
// the order is kept, however dense the schedule is. For an object that is not stored yet, and so
// has no uid, it is the longest one that it can be.
func (p *Plan) Delay(slot time.Time) time.Duration {
	if p.jitter == 0 {
		return 0
	}
	most := p.jitter
	if next := p.Next(slot); !next.IsZero() {
		most = min(most, next.Sub(slot)-time.Second)
	}
	if p.uid == "" {
		return most
	}
	sum := fnv.New64a()
	_, _ = sum.Write(binary.BigEndian.AppendUint64([]byte(p.uid), uint64(slot.Unix()))) //nolint:gosec // G115: every bit counts. A hash never errs.
	return time.Duration(sum.Sum64()%uint64(most/time.Second+1)) * time.Second          //nolint:gosec // G115: most is positive, and the rest below it.
}

// InWindow reports whether the window of a scheduled time is still open at a later instant.
// Windows that overlap, or follow each other without a gap, are one.
func (p *Plan) InWindow(slot, at time.Time) bool { return p.ClosesBefore(slot, at.Add(1)).After(at) }

// ClosesBefore returns when the window of a scheduled time closes, limit if that is earlier.
func (p *Plan) ClosesBefore(slot, limit time.Time) time.Time { return p.windows.OpenUntil(slot, limit) }

// Skips returns the reason for which a scheduled time will pass without a restart, as far as it is
// known before, "" for none. restarted is the time in the annotation restartedAt of the
// Deployment, the zero time if there is none.
func (p *Plan) Skips(slot, restarted time.Time) string {
	switch {
	case !p.InWindow(slot, p.Start(slot)):
		return ReasonOutsideWindow
	case restarted.After(slot):
		return ReasonAlreadyRestarted
	}
	return ""
}

// maxTried is the number of scheduled times, and of windows, that are searched for restarts.
const maxTried = 100

// Restarts returns the scheduled times of the first n restarts after an instant, fewer if there are
// no more among the next hundred scheduled times within windows.
func (p *Plan) Restarts(after time.Time, n int) (restarts []time.Time) {
	for tried := 0; tried < maxTried && len(restarts) < n; tried++ {
		slot := p.Next(after)
		if slot.IsZero() {
			break
		}
		after = slot.Time
		if p.Skips(slot.Time, time.Time{}) == "" {
			restarts = append(restarts, slot.Time)
		} else if opens, found := p.windows.Opens(slot.Time); found && !p.InWindow(slot.Time, slot.Time) {
			after = opens.Add(-time.Second)
		}
	}
	return restarts
}
