// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package freeport

import (
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	c := &chooser{free: func(port int) bool { return port%2 == 0 }, chosen: map[int]bool{}}
	var wait sync.WaitGroup
	for range 100 {
		wait.Go(func() {
			if port, err := c.choose(); err != nil || port < first || port > last || port%2 != 0 {
				t.Errorf("chose %d, which is out of range or not free: %v", port, err)
			}
		})
	}
	wait.Wait()
	if len(c.chosen) != 100 {
		t.Errorf("chose %d distinct ports, want 100", len(c.chosen))
	}
	none := &chooser{free: func(int) bool { return false }}
	if port, err := none.choose(); err == nil {
		t.Errorf("chose %d although no port is free", port)
	}
}

// TestNotEphemeral: the kernel gives none of these ports to a connection or another listener.
func TestNotEphemeral(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return // Not Linux.
	}
	if lowest, err := strconv.Atoi(strings.Fields(string(text))[0]); err != nil || lowest <= last {
		t.Errorf("ephemeral ports begin with %d, want above %d: %v", lowest, last, err)
	}
}

func TestCanListen(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if canListen(listener.Addr().(*net.TCPAddr).Port) {
		t.Error("canListen reports that a port in use is free")
	}
}
