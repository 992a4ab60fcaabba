// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
)

// starting is a Start whose attempts end with what is sent to end.
type starting struct {
	*Start
	clock *clocktesting.FakePassiveClock
	begun chan struct{}
	end   chan error
	thens chan struct{}
}

func newStarting() *starting {
	s := &starting{
		clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)), begun: make(chan struct{}, 10), end: make(chan error), thens: make(chan struct{}, 10),
	}
	s.Start = &Start{
		Clock: s.clock,
		Try: func(context.Context) (ctrlcache.Informer, error) {
			s.begun <- struct{}{}
			return nil, <-s.end
		},
		Then: func(ctrlcache.Informer) error {
			s.thens <- struct{}{}
			return nil
		},
	}
	return s
}

func (s *starting) pass(d time.Duration) { s.clock.SetTime(s.clock.Now().Add(d)) }

// becomes waits until Ensure returns an error, nil when it runs.
func (s *starting) becomes(t *testing.T, want error) {
	t.Helper()
	var got error
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		got = s.Ensure(ctx)
		return errors.Is(got, want) && (got == nil) == (want == nil), nil
	})
	if err != nil {
		t.Fatalf("it is %v, want %v", got, want)
	}
}

// A reconcile never waits for an informer, and knows whether it has begun, runs or cannot run.
func TestStart(t *testing.T) {
	t.Parallel()
	s, failed := newStarting(), errors.New("the list is refused")
	for range 3 { // Of the second and third one, nothing begins.
		s.becomes(t, ErrStarting)
	}
	<-s.begun
	s.pass(patience)
	s.becomes(t, errSlow)
	s.end <- failed
	s.becomes(t, failed)
	if !s.Failed() || s.Runs() || len(s.begun) != 0 {
		t.Errorf("failed: %t, runs: %t, attempts: %d", s.Failed(), s.Runs(), len(s.begun))
	}
	s.pass(pause)
	s.becomes(t, failed) // The next attempt begins, and what is known stays.
	<-s.begun
	s.end <- nil
	s.becomes(t, nil)
	<-s.thens
	s.Stop(apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no permission")))
	s.pass(longPause - 1)
	if err := s.Ensure(t.Context()); !apierrors.IsForbidden(err) || len(s.begun) != 0 {
		t.Errorf("after the permission has gone: %v", err)
	}
	s.pass(1)
	s.becomes(t, ErrStarting)
	<-s.begun
	s.Stop(failed) // While it starts: the result of the attempt is not that of the next one.
	s.end <- nil
	s.becomes(t, failed)
	if len(s.thens) != 0 {
		t.Error("an attempt that was overtaken has an effect")
	}
}
