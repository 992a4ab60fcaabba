// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net"
	"testing"
)

func TestDraw(t *testing.T) {
	t.Parallel()
	taken := map[int]bool{}
	p := &ports{free: func(port int) bool { return port%2 == 0 && !taken[port] }}
	for range 100 {
		port, err := p.draw()
		if err != nil {
			t.Fatal(err)
		}
		if port < firstPort || port > lastPort || port%2 != 0 {
			t.Errorf("drew %d, which is out of range or not free", port)
		}
		for _, earlier := range p.drawn[:len(p.drawn)-1] {
			if earlier == port {
				t.Errorf("drew %d twice", port)
			}
		}
	}
	none := &ports{free: func(int) bool { return false }}
	if port, err := none.draw(); err == nil {
		t.Errorf("drew %d although no port is free", port)
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
