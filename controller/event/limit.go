// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// The limit of the events of one object.
const (
	// Burst is the number of events without a limit, Interval the time between two of them
	// after these.
	Burst    = 4
	Interval = 15 * time.Second
	// maxObjects bounds the memory of a Limit. A Limit that is full forgets all objects, so that
	// each may have another burst.
	maxObjects = 4096
)

// Limit limits the events of each object. The zero value is ready for use, and nil allows every
// event.
type Limit struct {
	mu       sync.Mutex
	limiters map[types.UID]*rate.Limiter
}

// Allow takes one event from the limit of an object, and reports whether it may be emitted now.
func (l *Limit) Allow(object types.UID, now time.Time) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.limiters[object]
	if limiter == nil {
		if l.limiters == nil || len(l.limiters) >= maxObjects {
			l.limiters = map[types.UID]*rate.Limiter{}
		}
		limiter = rate.NewLimiter(rate.Every(Interval), Burst)
		l.limiters[object] = limiter
	}
	return limiter.AllowN(now, 1)
}
