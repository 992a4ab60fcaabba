// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freeport chooses ports for processes that are started later.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are below the range of ephemeral ports (from 32768 on Linux), from which the kernel
// takes the port of any connection and of any listener without one. So a port stays free
// until its process is started, and also until a cluster is started again after weeks. They
// are chosen at random, because two programs do not know each other's ports.
const (
	first = 20000
	last  = 32767
	tries = 1000
)

// chooser chooses distinct ports.
type chooser struct {
	// free reports whether a port is free.
	free   func(port int) bool
	mutex  sync.Mutex
	chosen map[int]bool
}

var process = &chooser{free: canListen, chosen: map[int]bool{}}

// Choose returns a port on which no local process listens, and which this process has not
// chosen before. It returns an error if it finds none.
func Choose() (int, error) { return process.choose() }

// Addresses returns n local addresses with such ports.
func Addresses(n int) ([]string, error) {
	addresses := make([]string, 0, n)
	for range n {
		port, err := Choose()
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, address(port))
	}
	return addresses, nil
}

func (c *chooser) choose() (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for range tries {
		port := first + rand.IntN(last-first+1)
		if !c.chosen[port] && c.free(port) {
			c.chosen[port] = true
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port found between %d and %d", first, last)
}

// canListen reports whether a local port is free.
func canListen(port int) bool {
	listener, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
