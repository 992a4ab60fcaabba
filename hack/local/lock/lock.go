// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lock lets one process at a time do something to a directory that
// several clones share. The kernel drops the lock of a process that dies, so a
// lock file left behind means nothing and is never removed.
package lock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// retryEvery is how often a lock that somebody else holds is tried again.
const retryEvery = 200 * time.Millisecond

// Acquire takes the exclusive lock on the file at path, which it makes with
// its directory if need be. While somebody else holds the lock it waits, after
// one call of waiting, until ctx ends. The function it returns lets go.
func Acquire(ctx context.Context, path string, waiting func()) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of a lock: %w", err)
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
