// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// server counts the writes that it gets, and answers each with an error.
type server struct {
	*clocktesting.FakePassiveClock
	client client.Client
	writes int
	err    error
	// takes is how long an answer takes.
	takes time.Duration
}

func newServer() *server {
	s := &server{FakePassiveClock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))}
	answer := func() error {
		s.writes++
		s.pass(s.takes)
		return s.err
	}
	s.client = New(interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return answer() },
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
			obj.SetResourceVersion(obj.GetResourceVersion() + "1") // Each changes something.
			return answer()
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return answer()
		},
	}), s)
	return s
}

func (s *server) pass(d time.Duration) { s.SetTime(s.Now().Add(d)) }

// during returns how many writes arrive in a time in which each is tried twice a second.
func (s *server) during(d time.Duration, write func() error) int {
	before := s.writes
	for end := s.Now().Add(d); ; s.pass(500 * time.Millisecond) {
		for write() == nil {
		}
		if !s.Now().Before(end) {
			return s.writes - before
		}
	}
}

func deployment(uid types.UID, managers ...metav1.ManagedFieldsEntry) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "box", UID: uid, ManagedFields: managers}}
}

// An owner has ten writes at once and then three a minute, whatever is written and by which verb,
// and anew with each generation. A dry run is no write.
func TestWrites(t *testing.T) {
	t.Parallel()
	s := newServer()
	of := func(generation int64) *Owner { return For(s.client, "owner", generation) }
	hpa := deployment("a", metav1.ManagedFieldsEntry{Manager: "hpa"})
	turn := 0
	write := func(owner *Owner) func() error {
		return func() error {
			if turn++; turn%3 == 0 {
				return s.client.SubResource("scale").Patch(t.Context(), hpa, nil, owner)
			} else if turn%3 == 1 {
				return s.client.Patch(t.Context(), hpa, anything, owner)
			}
			return s.client.Create(t.Context(), hpa, owner)
		}
	}
	if got := s.during(0, write(of(1))); got != 10 {
		t.Errorf("%d writes at once, want 10", got)
	}
	if got := s.during(3*time.Minute, write(of(1))); got != 9 {
		t.Errorf("%d writes in the next three minutes, want 9", got)
	}
	contested := of(1).Contested()
	want := `Deployment "box": it is modified repeatedly by field manager "hpa"; it is written at most 3 times a minute, ` +
		`next after 2001-09-09T01:50:00Z; stop the other client, or change this object`
	if contested == nil || !contested.Exhausted || contested.RetryAfter != 20*time.Second || contested.Error() != want {
		t.Fatalf("contested is %+v: %v", contested, contested)
	}
	contested.Field = "spec.replicas" // It is the caller's own.
	if again := of(1).Contested(); again.Field != "" || again.Error() != want {
		t.Errorf("a caller has changed what is contested to %v", again)
	}
	of(1).SetManager(contested, "spec.paused", "other")
	if again := of(1).Contested(); again.Error() != contested.Error() || again.Field != "spec.paused" || again.Manager != "other" {
		t.Errorf("blamed is %v, and then %v", contested, again)
	}
	if err := s.client.Create(t.Context(), hpa, client.DryRunAll, of(1)); err != nil {
		t.Errorf("a dry run is limited: %v", err)
	}
	s.SetTime(contested.Next)
	if again := of(1).Contested(); again == nil || again.Exhausted {
		t.Errorf("at the time of the next write it is %+v, want contested and not exhausted", again)
	}
	s.pass(of(1).Contested().RetryAfter)
	if again := of(1).Contested(); again != nil {
		t.Errorf("after a minute without a write it is still contested: %v", again)
	}
	if got := s.during(0, write(of(2))); got != 10 || of(1).Contested() != nil {
		t.Errorf("%d writes of a new generation, want 10", got)
	}
	if got := s.during(0, write(For(s.client, "other", 1))); got != 10 {
		t.Errorf("%d writes of another owner, want 10", got)
	}
	if got := s.during(0, func() error { return s.client.Patch(t.Context(), hpa, anything) }); got != 10 {
		t.Errorf("%d writes of an object without an owner, want 10", got)
	}
	if err := s.client.Create(t.Context(), deployment("")); !errors.Is(err, errNoOwner) {
		t.Errorf("a write that counts for nothing: %v", err)
	}
}

// A status is written ten times at once and then once a second, a new generation or not. It may
// be written again after the time in the error, which is never more than a second.
func TestStatus(t *testing.T) {
	t.Parallel()
	s := newServer()
	write := func(generation int64) func() error {
		return func() error {
			return s.client.Status().Patch(t.Context(), deployment("owner"), nil, For(s.client, "owner", generation))
		}
	}
	if got := s.during(0, write(1)); got != 10 {
		t.Errorf("%d writes at once, want 10", got)
	}
	if got := s.during(time.Minute, write(2)); got != 60 {
		t.Errorf("%d writes in a minute, want 60", got)
	}
	for i := range 100 {
		later, early := errors.AsType[*LaterError](write(3)())
		if !early || later.After > time.Second {
			t.Fatalf("the status is to be written %v later", later)
		}
		s.pass(later.After)
		if err := write(3)(); err != nil {
			t.Fatalf("round %d: after this time: %v", i, err)
		}
	}
	s.err = errors.New("conflict")
	if got := s.during(time.Minute, func() error { return errors.Join(write(4)(), s.err) }); got > 61 {
		t.Errorf("%d attempts in a minute", got)
	}
}

// Writes that fail do not use up the writes.
func TestFailures(t *testing.T) {
	t.Parallel()
	s := newServer()
	owner := For(s.client, "owner", 1)
	s.err = errors.New("too many requests")
	for range 100 {
		_ = s.client.Create(t.Context(), deployment("a"), owner)
	}
	s.err = nil
	if got := s.during(0, func() error { return s.client.Create(t.Context(), deployment("a"), owner) }); got != 10 {
		t.Errorf("%d writes after 100 that were refused, want 10", got)
	}
}

func TestManager(t *testing.T) {
	t.Parallel()
	at := func(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(second, 0)} }
	d := deployment("a",
		metav1.ManagedFieldsEntry{Manager: "first", Time: at(1)},
		metav1.ManagedFieldsEntry{Manager: "kubectl", Subresource: "scale", Time: at(3)},
		metav1.ManagedFieldsEntry{Manager: "second", Time: at(2)},
		metav1.ManagedFieldsEntry{Manager: "kube-controller-manager", Subresource: "status", Time: at(4)},
		metav1.ManagedFieldsEntry{Manager: "modelbox-controller", Time: at(5)},
	)
	if got := Manager(d); got != "kubectl" {
		t.Errorf("the other manager is %q", got)
	}
	if got := Manager(deployment("a")); got != "" {
		t.Errorf("without managedFields it is %q", got)
	}
}

// The memory is bounded by the owners for which something is limited, however many others there
// were.
func TestTheLimiterForgets(t *testing.T) {
	t.Parallel()
	s := newServer()
	for i := range 20_000 {
		owner := For(s.client, types.UID(fmt.Sprint(i)), 1)
		s.err = nil
		if i%100 == 0 {
			s.err = errors.New("refused")
		}
		_ = s.client.Create(t.Context(), deployment("a"), owner)
		_ = s.client.Status().Patch(t.Context(), deployment("a"), nil, owner)
		if !owner.HasRecentWrites() {
			t.Fatal("an owner is forgotten at once")
		}
		s.pass(time.Second)
	}
	if n := len(s.client.(*limited).limiter.buckets); n > 1100 {
		t.Errorf("%d buckets are held", n)
	}
}

var anything = client.RawPatch(types.MergePatchType, nil)
