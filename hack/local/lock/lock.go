// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lock makes sure that only one process at a time changes a directory that
// several clones share. The kernel releases the lock of a process that dies, so a
// lock file that still exists has no meaning and is never removed.
package lock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// retryEvery is the interval between attempts to take a lock that is held.
const retryEvery = 200 * time.Millisecond

// Acquire takes the exclusive lock on the file at path, which it creates with its
// directory if necessary. If the lock is held, it calls waiting once and waits until the
// lock is free or ctx ends. The function that it returns releases the lock.
func Acquire(ctx context.Context, path string, waiting func()) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of a lock: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a lock: %w", err)
	}
	if err := wait(ctx, file, waiting); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}

func wait(ctx context.Context, file *os.File, waiting func()) error {
	held, err := try(file)
	if held || err != nil {
		return err
	}
	waiting()
	ticker := time.NewTicker(retryEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		if held, err := try(file); held || err != nil {
			return err
		}
	}
}
