// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"time"

	"golang.org/x/time/rate"
)

// The pace of events that many objects have in the same second.
const (
	paceBurst = 50
	pace      = 50 // A second.
)

// Pace delays events that come together, so that their requests do not compete with those of
// the reconciles that emit them. It is created by NewPace; nil delays none.
type Pace struct{ limiter *rate.Limiter }

// NewPace returns a Pace of 50 events at once, and 50 for each second after that.
func NewPace() *Pace { return &Pace{rate.NewLimiter(pace, paceBurst)} }

// Emit calls emit, now or when it is its turn. An event whose turn has not come when the process
// ends is lost.
func (p *Pace) Emit(now time.Time, emit func()) {
	delay := p.delay(now)
	if delay <= 0 {
		emit()
		return
	}
	time.AfterFunc(delay, emit)
}

func (p *Pace) delay(now time.Time) time.Duration {
	if p == nil {
		return 0
	}
	return p.limiter.ReserveN(now, 1).DelayFrom(now)
}
