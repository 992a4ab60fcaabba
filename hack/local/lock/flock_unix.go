// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package lock

import (
	"errors"
	"os"
	"syscall"
)

// try takes the lock if it is free. An flock belongs to the open file description, so
// it also excludes another one in the same process, and closing the file releases it.
func try(file *os.File) (held bool, err error) {
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR):
		return false, nil
	default:
		return false, err
	}
}
