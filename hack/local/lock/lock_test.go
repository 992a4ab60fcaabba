// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package lock_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/hack/local/lock"
)

func TestAcquireWaitsForTheOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "lock")
	release, err := lock.Acquire(t.Context(), path, func() { t.Error("a free lock was waited for") })
	if err != nil {
		t.Fatal(err)
	}

	waiting := make(chan struct{})
	second := make(chan error, 1)
	go func() {
		releaseSecond, err := lock.Acquire(t.Context(), path, func() { close(waiting) })
		if err == nil {
			releaseSecond()
		}
		second <- err
	}()
	<-waiting
	select {
	case err := <-second:
		t.Fatalf("the second taker got through while the first held the lock: %v", err)
	default:
	}
	release()
	if err := <-second; err != nil {
		t.Errorf("the lock was let go, but the second taker got %v", err)
	}
}

func TestAcquireGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	release, err := lock.Acquire(t.Context(), path, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer release()

	ctx, cancel := context.WithCancel(t.Context())
	_, err = lock.Acquire(ctx, path, cancel)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestAcquireSaysWhatItCannotOpen(t *testing.T) {
	t.Parallel()
	if _, err := lock.Acquire(t.Context(), t.TempDir(), func() {}); err == nil {
		t.Error("a directory passed for a lock file")
	}
}
