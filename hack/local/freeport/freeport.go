// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freeport chooses local ports for processes that are started later.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are below the range of ephemeral ports (from 32768 on Linux), from which the kernel takes the
// port of any connection and of any listener without one. So a port stays free until its process
// is started. They are chosen at random, because two programs do not know each other's ports.
const (
	first = 20000
	last  = 32767
	tries = 1000
)

// Addresses returns n different local addresses on which no process listens.
func Addresses(n int) ([]string, error) {
	var addresses []string
	for range tries {
		if len(addresses) == n {
			return addresses, nil
		}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first+1)))
		if err != nil {
			continue
		}
		defer listener.Close() //nolint:errcheck,gocritic // At the end, so that no port is chosen twice.
		addresses = append(addresses, listener.Addr().String())
	}
	return nil, fmt.Errorf("no %d free ports found between %d and %d", n, first, last)
}
