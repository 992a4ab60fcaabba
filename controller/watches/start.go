// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// patience is how long an informer may take to start until that is a failure, and attempt how
	// long one attempt takes. It continues after that: the next attempt waits for the same
	// informer.
	patience, attempt = 10 * time.Second, 30 * time.Second
	// pause and longPause are the times after which a start that has failed is tried again. The
	// longer one is for a kind that the cluster does not have, and for a missing permission.
	pause, longPause = 10 * time.Second, time.Minute
)

// ErrStarting reports that an informer has begun to list its objects.
var ErrStarting = errors.New("its objects are being listed")

// errSlow reports that it has not ended in time.
var errSlow = errors.New("the list is not complete yet")

// Start is the start of an informer that a reconcile needs. It happens beside the reconciles, of
// which none waits for it. It is safe for concurrent use.
type Start struct {
	Clock clock.PassiveClock
	// Try starts the informer and waits until it has all objects.
	Try func(context.Context) (ctrlcache.Informer, error)
	// Then is called when it runs, and Runs says so: the first event may be sent.
	Then func(ctrlcache.Informer) error

	mu    sync.Mutex
	state state
}

type state struct {
	// attempt is not nil while a goroutine tries; another one has another attempt.
	attempt *time.Time
	runs    bool
	err     error
	// since is when the state began.
	since time.Time
}

// Runs reports whether the informer has started.
func (s *Start) Runs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.runs
}

// Failed reports whether the last attempt has failed, or the informer has stopped.
func (s *Start) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.err != nil
}

// Ensure begins to start the informer, unless that has begun, or failed a short time ago. It
// returns nil when it runs.
func (s *Start) Ensure(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock.Now()
	since := now.Sub(s.state.since)
	switch {
	case s.state.runs:
		return nil
	case s.state.attempt != nil && since >= patience:
		return errSlow
	case s.state.attempt != nil:
		return ErrStarting
	case s.state.err != nil && since < pauseAfter(s.state.err):
		return s.state.err
	}
	failed := s.state.err
	s.state = state{attempt: &now, since: now}
	go s.try(context.WithoutCancel(ctx), &now)
	if failed != nil && !IsUnavailable(failed) {
		return failed // It lasts: the object is not reconciled each time that it is tried again.
	}
	return ErrStarting
}

func pauseAfter(err error) time.Duration {
	if IsUnavailable(err) {
		return longPause
	}
	return pause
}

func (s *Start) try(ctx context.Context, begun *time.Time) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	informer, err := s.Try(ctx)
	s.mu.Lock()
	current := s.state.attempt == begun
	if current {
		s.state = state{runs: err == nil, err: err, since: s.Clock.Now()}
	}
	s.mu.Unlock()
	if current && err == nil {
		if err = s.Then(informer); err != nil {
			s.Stop(err)
		}
	}
	if err != nil && !IsUnavailable(err) {
		log.FromContext(ctx).Error(err, "Starting an informer")
	}
}

// Stop says that the informer has stopped, or cannot start, because of an error.
func (s *Start) Stop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state{err: err, since: s.Clock.Now()}
}
