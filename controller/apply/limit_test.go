// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// An owner has ten writes at once and then three a minute, and anew with each generation.
func TestLimiter(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
	l := &Limiter{Clock: clk}
	owner := &appsv1.Deployment{}
	owner.UID, owner.Generation = "a", 1
	what := ContestedError{Kind: "Deployment", Name: "box", Field: "spec.replicas", Manager: "hpa"}
	taken := func(until time.Duration) (n int) {
		for end := clk.Now().Add(until); ; clk.SetTime(clk.Now().Add(time.Second)) {
			for l.Take(owner, what) == nil {
				n++
			}
			if !clk.Now().Before(end) {
				return n
			}
		}
	}
	if got := taken(0); got != 10 {
		t.Errorf("%d writes at once, want 10", got)
	}
	if got := taken(3 * time.Minute); got != 9 {
		t.Errorf("%d writes in the next three minutes, want 9", got)
	}
	contested := l.Contested(owner)
	want := `Deployment "box": spec.replicas is modified repeatedly by field manager "hpa"; it is written at most 3 times a minute, ` +
		`next after 2001-09-09T01:50:00Z; stop the other client, or change this object`
	if contested == nil || !contested.Exhausted || contested.RetryAfter != 20*time.Second || contested.Error() != want {
		t.Fatalf("contested is %+v: %v", contested, contested)
	}
	clk.SetTime(contested.Next)
	if again := l.Contested(owner); again == nil || again.Exhausted {
		t.Errorf("at the time of the next write it is %+v, want contested and not exhausted", again)
	}
	clk.SetTime(clk.Now().Add(l.Contested(owner).RetryAfter))
	if again := l.Contested(owner); again != nil {
		t.Errorf("after a minute without a write it is still contested: %v", again)
	}
	owner.Generation = 2
	if got := taken(0); got != 10 {
		t.Errorf("%d writes of a new generation, want 10", got)
	}
	l.Return(owner)
	if got := taken(0); got != 1 {
		t.Errorf("%d writes after one was returned, want 1", got)
	}
}

// The memory is bounded by the owners whose writes are limited, however many others there were.
func TestLimiterForgets(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
	l := &Limiter{Clock: clk}
	for i := range 20_000 {
		owner := &appsv1.Deployment{}
		owner.UID = types.UID(fmt.Sprint(i))
		l.Take(owner, ContestedError{})
		clk.SetTime(clk.Now().Add(time.Second))
	}
	if len(l.buckets) > 1100 {
		t.Errorf("%d buckets are held", len(l.buckets))
	}
}
