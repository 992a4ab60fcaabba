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

func TestAcquireWaitsForRelease(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "lock")
	release, err := lock.Acquire(t.Context(), path, func() { t.Error("waited for a free lock") })
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
		t.Fatalf("the second call returned while the first held the lock: %v", err)
	default:
	}
	release()
	if err := <-second; err != nil {
		t.Errorf("the lock was released, but the second call returned %v", err)
	}
}

func TestAcquireEndsWithItsContext(t *testing.T) {
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

func TestAcquireFailsForADirectory(t *testing.T) {
	t.Parallel()
	if _, err := lock.Acquire(t.Context(), t.TempDir(), func() {}); err == nil {
		t.Error("a directory was accepted as a lock file")
	}
}
