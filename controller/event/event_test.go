// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestLimit(t *testing.T) {
	var l Limit
	start := time.Unix(1e9, 0)
	count := func(object types.UID, seconds int) int {
		allowed := 0
		for i := range seconds * 100 {
			if l.Allow(object, start.Add(time.Duration(i)*10*time.Millisecond)) {
				allowed++
			}
		}
		return allowed
	}
	if got := count("a", 60); got != Burst+3 {
		t.Errorf("%d events in a minute of 100 a second, want %d", got, Burst+3)
	}
	if got := count("b", 1); got != Burst {
		t.Errorf("%d events of another object in a second, want %d", got, Burst)
	}
	for i := range 3 * maxObjects {
		l.Allow(types.UID(strconv.Itoa(i)), start)
	}
	if len(l.limiters) > maxObjects {
		t.Errorf("%d objects are remembered, want at most %d", len(l.limiters), maxObjects)
	}
	if !(*Limit)(nil).Allow("a", start) {
		t.Error("nil limits")
	}
}

func TestOnce(t *testing.T) {
	var o Once[int]
	for i, step := range []struct {
		object types.UID
		key    int
		want   bool
	}{{"a", 1, true}, {"a", 1, false}, {"b", 1, true}, {"a", 2, true}, {"a", 2, false}, {"b", 1, false}} {
		if got := o.First(step.object, step.key); got != step.want {
			t.Errorf("step %d: First(%s, %d) = %t", i, step.object, step.key, got)
		}
	}
	for i := range 3 * maxObjects {
		o.First(types.UID(strconv.Itoa(i)), 0)
	}
	if len(o.last) > maxObjects {
		t.Errorf("%d objects are remembered, want at most %d", len(o.last), maxObjects)
	}
}

func TestPace(t *testing.T) {
	now, p := time.Unix(1e9, 0), NewPace()
	for i := range 1000 {
		got, want := p.delay(now), time.Duration(max(i+1-paceBurst, 0))*time.Second/pace
		if (got - want).Abs() > time.Millisecond {
			t.Fatalf("event %d is delayed by %s, want %s", i, got, want)
		}
	}
	if got := p.delay(now.Add(time.Minute)); got > 0 {
		t.Errorf("an event a minute later is delayed by %s", got)
	}
	emitted := false
	(*Pace)(nil).Emit(now, func() { emitted = true })
	if !emitted {
		t.Error("nil delays")
	}
}
