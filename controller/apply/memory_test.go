// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestRepairsAreLimited(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	m := &Memory{Clock: clock}
	image, env := []drift{{field: "image", manager: "other"}}, []drift{{field: "env"}}
	allowed := func(drifts []drift) bool {
		limited, _ := m.allowRepair("uid", drifts)
		return limited == nil
	}
	for i := range repairBurst {
		if !allowed(image) {
			t.Fatalf("repair %d is not allowed", i+1)
		}
	}
	limited, next := m.allowRepair("uid", image)
	if limited == nil || limited.manager != "other" || !next.Equal(clock.Now().Add(repairInterval)) {
		t.Fatalf("after a burst the repair of %+v is allowed at %s, want %s", limited, next, clock.Now().Add(repairInterval))
	}
	clock.SetTime(clock.Now().Add(repairInterval / 2))
	if _, again := m.allowRepair("uid", image); !again.Equal(next) {
		t.Errorf("the next repair is allowed at %s, then at %s", next, again)
	}
	if !allowed(env) {
		t.Error("the repair of another field is not allowed")
	}
	if limited, _ := m.allowRepair("other", image); limited != nil {
		t.Error("the repair of another child is not allowed")
	}
	clock.SetTime(next)
	if !allowed(image) {
		t.Error("the next repair is not allowed at its time")
	}
	repairs := 0
	for range 60 * 60 {
		clock.SetTime(clock.Now().Add(time.Second))
		if allowed(image) {
			repairs++
		}
	}
	if repairs != 180 {
		t.Errorf("%d repairs in an hour, want 180", repairs)
	}
}

func TestContestedPeriod(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	m := &Memory{Clock: clock}
	if err := m.stillContested("uid"); err != nil {
		t.Fatal(err)
	}
	m.setContested("uid", &ContestedError{Kind: "Deployment", Name: "box", Field: "spec.replicas", Manager: "hpa", NextRepair: clock.Now().Add(repairInterval)})
	err := m.stillContested("uid")
	contested, ok := errors.AsType[*ContestedError](err)
	if !ok || contested.RetryAfter != repairInterval+contestedPeriod {
		t.Fatalf("the child is still contested: %+v", err)
	}
	result, err := Result(fmt.Errorf("joined: %w", err))
	if err != nil || result.RequeueAfter != contested.RetryAfter {
		t.Errorf("the result is %+v, %v", result, err)
	}
	clock.SetTime(clock.Now().Add(contested.RetryAfter))
	if err := m.stillContested("uid"); err != nil {
		t.Errorf("after the period: %v", err)
	}
}

func TestResult(t *testing.T) {
	t.Parallel()
	if result, err := Result(fmt.Errorf("reading: %w", ErrOwnerGone)); err != nil || !result.IsZero() {
		t.Errorf("a deleted owner is retried: %+v, %v", result, err)
	}
	if _, err := Result(&StaleError{}); err == nil {
		t.Error("a stale owner is not retried")
	}
	if result, err := Result(nil); err != nil || !result.IsZero() {
		t.Errorf("success is %+v, %v", result, err)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := &Memory{}
	for i := range 2*maxEntries + 1 {
		uid := types.UID(fmt.Sprint(i))
		m.setRewrites(uid, []rewrite{{}})
		m.setCreated(uid, "Deployment")
		m.setWritten(uid, deployment())
		m.setContested(uid, &ContestedError{})
		m.allowRepair(uid, []drift{{field: "image"}})
	}
	for name, got := range map[string]int{
		"rewrites": len(m.rewrites), "created": len(m.created), "written": len(m.written), "contested": len(m.contested), "repairs": len(m.repairs),
	} {
		if got > maxEntries {
			t.Errorf("%d entries in %s", got, name)
		}
	}
	if !m.wasCreated(types.UID(fmt.Sprint(2*maxEntries)), "Deployment") {
		t.Error("the latest entry is missing")
	}
}

func TestNilMemory(t *testing.T) {
	t.Parallel()
	var m *Memory
	m.setRewrites("uid", []rewrite{{hash: 1}})
	m.setCreated("uid", "Deployment")
	m.setWritten("uid", deployment())
	if m.areKnownRewrites("uid", []rewrite{{hash: 1}}) || m.wasCreated("uid", "Deployment") || m.wasWritten("uid", deployment()) {
		t.Error("nil holds something")
	}
	if limited, _ := m.allowRepair("uid", []drift{{}}); limited != nil || m.stillContested("uid") != nil {
		t.Error("nil limits repairs")
	}
}
