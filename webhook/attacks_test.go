// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestAttacks sends 600 honest reviews to a webhook process while clients without credentials take
// what they can. No review may fail, and the process stays within the memory limit of its pod.
// (It uses the memory that Linux reports, which the race detector multiplies.)
func TestAttacks(t *testing.T) {
	for _, tc := range []struct {
		name        string
		connections int
		attack      attack
		long        bool
	}{
		{"260 slow bodies", 260, bodyByteByByte, false},
		{"2,000 idle connections, 260 bodies that stop, and six of 7 MiB", 2266, together(), false},
		{"six bodies of 7 MiB", 6, largeBodies(`"spec"`, `"list": [`, `{"a": "b"}`, `]`), false},
		{"six bodies of 7 MiB, not JSON", 6, largeBodies("", "", "", ""), true},
		{"six bodies of 7 MiB, of groups", 6, largeBodies(`"object"`, `"userInfo": {"groups": [`, `""`, `]}`), true},
		{"six bodies of 7 MiB, of values of a label", 6, largeBodies(`"object"`, `"userInfo": {"extra": {"a": [`, `""`, `]}}`), true},
		{"100 large bodies byte by byte", 100, largeBodyByteByByte, true},
		{"260 bodies that stop at 200 KiB", 260, bodyThatStops(200 << 10), true},
		{"answers that are not read", 32, unreadAnswers, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.long && os.Getenv("MODELBOX_LONG") == "" {
				t.Skip("a part of make test-long")
			}
			p := startReady(t, []string{"GOMEMLIMIT=224MiB", "HOME=" + t.TempDir()})
			honest := sendBusily(t, 5, func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, p.webhooks)
			})
			a := startAttack(t, p.webhooks, tc.connections, tc.attack)
			<-a.begun
			honest.sendMore(600)
			honest.stop()
			a.stop()
			most := p.peak()
			t.Logf("%d connections opened, %d reviews, %d MiB", a.opened.Load(), honest.sent.Load(), most>>10)
			if honest.lost.Load() > 0 {
				t.Errorf("%d of %d reviews failed: %v", honest.lost.Load(), honest.sent.Load(), honest.reason.Load())
			}
			if a.opened.Load() < int64(tc.connections) {
				t.Errorf("%d of %d connections were opened", a.opened.Load(), tc.connections)
			}
			if most > memoryLimit {
				t.Errorf("the process had %d MiB", most>>10)
			}
			p.end()
		})
	}
}

// memoryLimit is that of the Deployment in config/webhook/deployment.yaml, in KiB.
const memoryLimit = 256 << 10

// peak returns the most memory that the process has had so far, in KiB, without the pages of
// its own file, which the kernel can take back.
func (p *process) peak() int {
	p.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		p.Fatalf("the process has ended: %v: %s", err, &p.output)
	}
	value := func(name string) (kib int) {
		_, rest, _ := strings.Cut(string(status), name)
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			p.Fatal(err)
		}
		return kib
	}
	return value("VmHWM:") - value("RssFile:")
}

// attack does something on a connection until it ends, after it has called begun.
type attack func(conn net.Conn, begun func())

// attackers are the connections of an attack.
type attackers struct {
	opened atomic.Int64
	// begun is closed when all connections have been opened, and their attacks begun.
	begun chan struct{}
	stop  func()
}

func startAttack(t *testing.T, address string, connections int, attack attack) *attackers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	a := &attackers{begun: make(chan struct{})}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	var begun, ended sync.WaitGroup
	opening := make(chan struct{}, 64)
	for range allowed(t, connections) {
		begun.Add(1)
		ended.Go(func() {
			opening <- struct{}{}
			done := sync.OnceFunc(func() { <-opening; begun.Done() })
			defer done()
			conn, err := dialer.DialContext(ctx, "tcp", address)
			if err != nil {
				return
			}
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			a.opened.Add(1)
			attack(conn, done)
		})
	}
	go func() { begun.Wait(); close(a.begun) }()
	a.stop = func() { cancel(); ended.Wait() }
	t.Cleanup(a.stop)
	return a
}

// allowed returns how many connections this process may open of those wanted.
func allowed(t *testing.T, connections int) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	most := int(min(limit.Cur, 1<<20)) - 200
	if connections > most {
		t.Logf("%d connections instead of %d, because of the limit of open files", most, connections)
	}
	return min(connections, most)
}

// secured returns TLS on a connection.
func secured(conn net.Conn) net.Conn {
	return tls.Client(conn, &tls.Config{InsecureSkipVerify: true, CurvePreferences: []tls.CurveID{tls.X25519}})
}

// drip sends a text slowly, after a first part at once, until the connection ends.
func drip(conn net.Conn, begun func(), first string) {
	_, err := io.WriteString(conn, first)
	begun()
	for ; err == nil; _, err = io.WriteString(conn, " ") {
		time.Sleep(300 * time.Millisecond)
	}
}

func bodyByteByByte(conn net.Conn, begun func()) { drip(secured(conn), begun, announce(100_000)) }

func largeBodyByteByByte(conn net.Conn, begun func()) { drip(secured(conn), begun, announce(7<<20)) }

// waitFor reads until the connection ends.
func waitFor(conn net.Conn, begun func()) {
	begun()
	_, _ = io.Copy(io.Discard, conn)
}

func idleConnection(conn net.Conn, begun func()) {
	client := secured(conn)
	_ = client.(*tls.Conn).Handshake()
	waitFor(client, begun)
}

func bodyThatStops(at int) attack {
	return func(conn net.Conn, begun func()) {
		client := secured(conn)
		_, _ = io.WriteString(client, announce(at+1)+strings.Repeat(" ", at))
		waitFor(client, begun)
	}
}

// together returns what takes the most memory: large bodies, which share a budget, those just below it,
// and idle connections.
func together() attack {
	var connections atomic.Int64
	large, below := largeBodies(`"spec"`, `"list": [`, `{"a": "b"}`, `]`), bodyThatStops(largeBody-2)
	return func(conn net.Conn, begun func()) {
		switch n := connections.Add(1); {
		case n <= 6:
			large(conn, begun)
		case n <= 266:
			below(conn, begun)
		default:
			idleConnection(conn, begun)
		}
	}
}

// largeBodies returns an attack that sends reviews of 7 MiB, one after another, which have an item
// again and again, before a field. Without an item they are a list in YAML.
func largeBodies(at, before, item, after string) attack {
	const size = 7<<20 - 1<<10
	review := strings.Repeat("- a\n", size/4)
	if item != "" {
		items := strings.Repeat(item+",", (size-len(unitedDeployment))/(len(item)+1)) + item
		review = strings.Replace(unitedDeployment, at, before+items+after+", "+at, 1)
	}
	return func(conn net.Conn, begun func()) {
		begun()
		client := secured(conn)
		answers := bufio.NewReader(client)
		for {
			if _, err := io.WriteString(client, announce(len(review))+review); err != nil {
				return
			}
			answer, err := http.ReadResponse(answers, nil)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, answer.Body)
		}
	}
}

// unreadAnswers sends one review after another without a wait for the answers, until the server
// reads no more.
func unreadAnswers(conn net.Conn, begun func()) {
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	client := secured(conn)
	request, err := announce(len(unitedDeployment))+unitedDeployment, error(nil)
	for err == nil {
		_ = client.SetWriteDeadline(time.Now().Add(time.Second))
		_, err = io.WriteString(client, request)
	}
	begun()
	_ = conn.SetWriteDeadline(time.Time{})
	for err = nil; err == nil; {
		_, err = io.WriteString(conn, request)
	}
}
