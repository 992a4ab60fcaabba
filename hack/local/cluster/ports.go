// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
)

// Ports are below the range of ephemeral ports (from 32768 on Linux), so that they are
// still free when a cluster is restarted after weeks. They are chosen at random, because
// two clusters that start at the same time do not know each other's ports.
const (
	firstPort = 20000
	lastPort  = 32767
	portTries = 1000
)

// ports chooses distinct ports.
type ports struct {
	// free reports whether a port is free.
	free  func(port int) bool
	drawn []int
}

// draw returns a free port that it has not returned before.
func (p *ports) draw() (int, error) {
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if !slices.Contains(p.drawn, port) && p.free(port) {
			p.drawn = append(p.drawn, port)
			return port, nil
		}
	}
	return 0, errors.New("no free port found between " + strconv.Itoa(firstPort) + " and " + strconv.Itoa(lastPort))
}

// canListen reports whether a local port is free.
func canListen(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
