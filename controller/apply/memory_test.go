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
	for i := range burst {
		if !allowed(image) {
			t.Fatalf("repair %d is not allowed", i+1)
		}
	}
	limited, due := m.allowRepair("uid", image)
	if limited == nil || limited.manager != "other" || !due.Equal(clock.Now().Add(interval)) {
		t.Fatalf("after a burst the repair of %+v is due at %s, want %s", limited, due, clock.Now().Add(interval))
	}
	clock.SetTime(clock.Now().Add(interval / 2))
	if _, again := m.allowRepair("uid", image); !again.Equal(due) {
		t.Errorf("the next repair is due at %s, then at %s", due, again)
	}
	if !allowed(env) {
		t.Error("the repair of another field is not allowed")
	}
	if limited, _ := m.allowRepair("other", image); limited != nil {
		t.Error("the repair of another child is not allowed")
	}
	clock.SetTime(due)
	if !allowed(image) {
		t.Error("the repair that is due is not allowed")
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

func TestContestedLastsUntilTheChildIsLeftAlone(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	m := &Memory{Clock: clock}
	if err := m.stillContested("uid"); err != nil {
		t.Fatal(err)
	}
	m.setContested("uid", &ContestedError{Kind: "Deployment", Name: "box", Field: "spec.replicas", Manager: "hpa", Due: clock.Now().Add(interval)})
	err := m.stillContested("uid")
	contested, ok := errors.AsType[*ContestedError](err)
	if !ok || contested.RetryAfter != interval+calmPeriod {
		t.Fatalf("the child is still contested: %+v", err)
	}
	result, err := Result(fmt.Errorf("joined: %w", err))
	if err != nil || result.RequeueAfter != contested.RetryAfter {
		t.Errorf("the result is %+v, %v", result, err)
	}
	clock.SetTime(clock.Now().Add(contested.RetryAfter))
	if err := m.stillContested("uid"); err != nil {
		t.Errorf("after a calm period: %v", err)
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
	for i := range 2*most + 1 {
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
		if got > most {
			t.Errorf("%d children are remembered as %s", got, name)
		}
	}
	if !m.wasCreated(types.UID(fmt.Sprint(2*most)), "Deployment") {
		t.Error("the latest is forgotten")
	}
}

func TestNoMemoryRemembersNothing(t *testing.T) {
	t.Parallel()
	var m *Memory
	m.setRewrites("uid", []rewrite{{sum: 1}})
	m.setCreated("uid", "Deployment")
	m.setWritten("uid", deployment())
	if m.areKnownRewrites("uid", []rewrite{{sum: 1}}) || m.wasCreated("uid", "Deployment") || m.wasWritten("uid", deployment()) {
		t.Error("nil remembers something")
	}
	if limited, _ := m.allowRepair("uid", []drift{{}}); limited != nil || m.stillContested("uid") != nil {
		t.Error("nil limits repairs")
	}
}
