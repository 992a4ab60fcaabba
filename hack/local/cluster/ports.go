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

// Ports are taken from below the range in which systems number outgoing
// connections (from 32768 on with Linux), so that a cluster that is restarted
// after weeks finds its own still free. They are drawn at random, because two
// clusters that start at the same time cannot see each other's.
const (
	firstPort = 20000
	lastPort  = 32767
	portTries = 1000
)

// ports draws distinct ports.
type ports struct {
	// free says whether a port can be listened on.
	free  func(port int) bool
	drawn []int
}

// draw returns a port that is free and was not drawn before.
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

// canListen says whether nobody listens on a port of this machine.
func canListen(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
