// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedules

import (
	"time"

	"github.com/modelbox-operator/modelbox-operator/cron"
)

// Slot is a scheduled time, in the time zone of its schedule, and the index of that schedule. The
// zero Slot is none.
type Slot struct {
	time.Time
	Index int
}

// Times are the scheduled times of one or several schedules. If several schedules have the same
// time, it is that of the last one. Each method takes the same time, however far apart its
// arguments are.
type Times []cron.Times

// Next returns the first scheduled time after an instant. None is found beyond the forty years of
// package cron.
func (t Times) Next(after time.Time) (next Slot) {
	for i := range t {
		slot, ok := t[i].Next(after, t[i].Zone)
		if ok && (next.IsZero() || !slot.After(next.Time)) {
			next = Slot{slot, i}
		}
	}
	return next
}

// Latest returns the last scheduled time that is not after an instant.
func (t Times) Latest(at time.Time) (latest Slot) {
	for i := range t {
		slot, ok := t[i].Prev(at, t[i].Zone)
		if ok && !slot.Before(latest.Time) {
			latest = Slot{slot, i}
		}
	}
	return latest
}

// Before returns the last scheduled time before another one.
func (t Times) Before(slot time.Time) Slot { return t.Latest(slot.Add(-time.Second)) }

// Due returns the scheduled time that applies at an instant: the latest one whose start has come,
// if it is not before open, the first one that has no result yet. superseded is the one before
// it, if that is not before open either; it stands for all earlier ones, which are not counted.
//
// delay returns how long after a scheduled time its start is, which must be before the next
// scheduled time. nil is no delay.
func (t Times) Due(open, now time.Time, delay func(time.Time) time.Duration) (due, superseded Slot) {
	due = t.Latest(now)
	if delay != nil && due.Add(delay(due.Time)).After(now) {
		due = t.Before(due.Time)
	}
	if due.Before(open) {
		return Slot{}, Slot{}
	}
	if superseded = t.Before(due.Time); superseded.Before(open) {
		superseded = Slot{}
	}
	return due, superseded
}
