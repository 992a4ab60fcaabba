// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
)

var errDied = errors.New("the process died")

// crashingClient is a client whose process dies at a write: before the request is sent, or
// after the write, so that its response is lost. It counts the writes.
type crashingClient struct {
	diesAt int // 0 is never; 1 is the first write.
	after  bool
	writes int
}

func (m *crashingClient) write(do func() error) error {
	m.writes++
	switch {
	case m.diesAt != m.writes:
		return do()
	case m.after:
		return errors.Join(do(), errDied)
	}
	return errDied
}
