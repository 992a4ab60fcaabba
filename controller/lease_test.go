// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

func TestLeaderElectionDefaults(t *testing.T) {
	t.Parallel()
	var o options
	o.bind(flag.NewFlagSet("controller", flag.ContinueOnError))
	o.leaderNamespace = "default"
	lock, err := o.newLease(&rest.Config{Host: "http://localhost"}, &o.access)
	if err != nil {
		t.Fatal(err)
	}
	if lock.valid != o.retryPeriod+o.renewDeadline {
		t.Errorf("a leader may ask for its lease for %s", lock.valid)
	}
	if got := requestTimeout(o.renewDeadline); got != 5500*time.Millisecond {
		t.Errorf("one request may take %s", got)
	}
	if o.leaseDuration <= o.renewDeadline || o.leaseDuration-o.retryPeriod < 2*3*time.Second {
		t.Errorf("a lease of %s is too short for a renew deadline of %s, or for delays of 0 to 3 s", o.leaseDuration, o.renewDeadline)
	}
}

func TestRequestTimeout(t *testing.T) {
	t.Parallel()
	for _, deadline := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 6 * time.Second, 25 * time.Second, 5 * time.Minute} {
		if got := requestTimeout(deadline); got >= deadline || got < deadline*9/10 {
			t.Errorf("a request may take %s of %s", got, deadline)
		}
	}
}

func TestLeaseDurationMustBeWholeSeconds(t *testing.T) {
	t.Parallel()
	o := leaseOptions{leaseDuration: 3500 * time.Millisecond, renewDeadline: 3200 * time.Millisecond, leaderNamespace: "default"}
	if _, err := o.newLease(&rest.Config{}, &access{}); err == nil {
		t.Error("a lease of 3.5 s is accepted: other replicas would wait for 3 s, and the leader tries for 3.2 s")
	}
}

func TestLeaderThatLostItsLeaseDoesNotReleaseIt(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	client := fake.NewClientset().CoordinationV1()
	replica := func(name string) *lease {
		meta := resourcelock.ResourceLockConfig{Identity: name}
		l := &lease{LeaseLock: &resourcelock.LeaseLock{Client: client, LockConfig: meta}, clock: clk, valid: 6400 * time.Millisecond}
		l.LeaseMeta.Name, l.LeaseMeta.Namespace = electionID, "default"
		return l
	}
	record := func(l *lease) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: l.Identity(), LeaseDurationSeconds: 7}
	}
	leader, other := replica("leader"), replica("other")
	ctx := t.Context()
	if err := leader.Create(ctx, record(leader)); err != nil {
		t.Fatal(err)
	}
	clk.SetTime(clk.Now().Add(leader.valid - time.Millisecond))
	if _, _, err := leader.Get(ctx); err != nil {
		t.Fatalf("before the renew deadline has passed: %v", err)
	}
	if err := leader.Update(ctx, record(leader)); err != nil {
		t.Fatal(err)
	}
	clk.SetTime(clk.Now().Add(leader.valid))
	if _, _, err := other.Get(ctx); err != nil {
		t.Fatalf("a replica that has never been the leader: %v", err)
	}
	if err := other.Update(ctx, record(other)); err != nil {
		t.Fatal(err)
	}
	// client-go's elector releases what it reads here.
	if _, _, err := leader.Get(ctx); !errors.Is(err, errLeaseLost) {
		t.Errorf("a leader that lost its lease reads it: %v", err)
	}
}

// reporter is a recorder.Provider that records the names of the recorders.
type reporter struct {
	recorder.Provider
	names []string
}

func (r *reporter) GetEventRecorder(name string) recorder.EventRecorder {
	r.names = append(r.names, name)
	return events.NewFakeRecorder(1)
}

func TestLeaderElectionEventsHaveAValidReporter(t *testing.T) {
	t.Parallel()
	provider := &reporter{}
	recordElections(&lease{LeaseLock: &resourcelock.LeaseLock{
		LockConfig: resourcelock.ResourceLockConfig{Identity: strings.Repeat("a-pod-", 12) + "_" + string(uuid.NewUUID())},
	}}, provider)
	if len(provider.names) != 1 {
		t.Fatalf("recorders: %q", provider.names)
	}
	if errs := validation.IsQualifiedName(provider.names[0]); len(errs) > 0 {
		t.Errorf("the API server refuses events of %q: %s", provider.names[0], errs)
	}
}
