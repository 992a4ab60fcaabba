// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/test/hostile"
)

// TestAttacks sends honest reviews to a webhook process while clients without credentials take
// what they can. No review may fail, and the process stays within the memory limit of its pod.
// (It uses the memory that Linux reports, which the race detector multiplies, and several
// addresses of the loopback interface.)
func TestAttacks(t *testing.T) {
	if testing.Short() {
		t.Skip("each attack takes a second of CPU or more")
	}
	for _, tc := range []struct {
		name        string
		connections int
		attack      attack
		// mebibytes is the most memory that the process may have had.
		mebibytes int
		// source is the address of the attack; that of the honest clients is 127.0.0.1. They
		// have the same one behind source NAT.
		source string
	}{
		{"260 bodies byte by byte", 260, bodyByteByByte, 160, "127.0.0.2"},
		{"2,000 bodies byte by byte", 2000, bodyByteByByte, 160, "127.0.0.2"},
		{"1,200 bodies byte by byte, same source", 1200, bodyByteByByte, 160, "127.0.0.1"},
		{"8,000 idle connections", 8000, idleConnection, 160, "127.0.0.2"},
		{"8,000 handshakes that stop", 8000, noHandshake, 128, "127.0.0.2"},
		{"8,000 handshakes that stop, same source", 8000, noHandshake, 128, "127.0.0.1"},
		{"1,500 headers byte by byte", 1500, headersByteByByte, 160, "127.0.0.2"},
		{"400 bodies that stop at 200 KiB", 400, bodyThatStops, 192, "127.0.0.2"},
		{"100 large bodies byte by byte", 100, largeBodyByteByByte, 160, "127.0.0.2"},
		{"ten large bodies", 10, largeBodies, 160, "127.0.0.2"},
		{"answers that are not read", 32, unreadAnswers, 160, "127.0.0.2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := startProcess(t, []string{asProcess + "=1", "GOMEMLIMIT=224MiB", "HOME=" + t.TempDir()})
			p.eventually("it is ready", func() bool { return p.get("http://"+p.probes+"/readyz") == "ok" })
			honest := sendReviews(t, p.webhooks)
			a := startAttack(t, p.webhooks, tc.source, tc.connections, tc.attack)
			<-a.begun
			honest.sendMore(150)
			sent := honest.stop()
			a.stop()
			most := mostMemory(t, p.Process.Pid)
			t.Logf("%d connections opened, %d reviews, the slowest took %v, %d MiB", a.opened.Load(), sent, time.Duration(honest.slowest.Load()).Round(time.Millisecond), most>>20)
			if most > tc.mebibytes<<20 {
				t.Errorf("the process had %d MiB, want at most %d", most>>20, tc.mebibytes)
			}
			p.end()
		})
	}
}

// TestTenAtOnce sends ten of the worst bodies at once, beside honest reviews, to a process with
// the memory limits of the Deployment. No honest review may fail.
func TestTenAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds of CPU")
	}
	const limit = 256 << 10 // In KiB: config/webhook/deployment.yaml.
	p := startProcess(t, []string{asProcess + "=1", "HOME=" + t.TempDir(), "GOMEMLIMIT=224MiB"})
	p.eventually("it is ready", func() bool { return p.get("http://"+p.probes+"/readyz") == "ok" })
	p.client.Timeout = time.Minute
	honest := sendReviews(t, p.webhooks)
	bodies, answered := 0, 0
	for _, size := range []int{110 << 10, 3 << 20} {
		for body := range ofModelBoxes(hostile.Bodies(size)) {
			if slices.ContainsFunc([]string{": labels", ": groups", "manifest, stored", "slashes, stored", "misfits and", "with variables", "fields, update"}, func(part string) bool {
				return strings.Contains(body.Name, part)
			}) {
				bodies++
				answered += p.tenAtOnce(&body)
			}
		}
	}
	sent := honest.stop()
	peak := p.peak()
	t.Logf("%d of %d bodies answered, and %d honest reviews, the slowest after %v; %d MiB", answered, 10*bodies, sent, time.Duration(honest.slowest.Load()).Round(time.Millisecond), peak>>10)
	if bodies == 0 || answered < 5*bodies {
		t.Error("most of the bodies were not worked on")
	}
	if peak > limit {
		t.Errorf("the process took %d MiB, more than its limit", peak>>10)
	}
	p.end()
}

// tenAtOnce sends ten requests with a body and returns how many a webhook has answered.
func (p *process) tenAtOnce(body *hostile.Body) int {
	var all sync.WaitGroup
	var answered atomic.Int64
	for i := range 10 {
		all.Go(func() {
			r, err := p.client.Post("https://"+p.webhooks+body.Paths[i%2], "application/json", strings.NewReader(body.Text))
			if err != nil {
				return
			}
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK || r.StatusCode == http.StatusBadRequest {
				answered.Add(1)
			}
		})
	}
	all.Wait()
	return int(answered.Load())
}

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

// mostMemory returns the most bytes that a process has had in memory.
func mostMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// reviews are sent by several clients, one by one, until they are stopped.
type reviews struct {
	*testing.T
	cancel        context.CancelFunc
	clients       sync.WaitGroup
	sent, slowest atomic.Int64
}

func sendReviews(t *testing.T, address string) *reviews {
	ctx, cancel := context.WithCancel(t.Context())
	r := &reviews{T: t, cancel: cancel}
	for n := range 5 {
		// Two of the clients open a new connection for each review.
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: n < 2}
		client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
		r.clients.Go(func() {
			defer transport.CloseIdleConnections()
			for ctx.Err() == nil {
				r.send(client, address)
			}
		})
	}
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *reviews) send(client *http.Client, address string) {
	start := time.Now()
	response, err := client.Post("https://"+address+unitedDeploymentPath, "application/json", strings.NewReader(unitedDeployment))
	if err != nil {
		r.Errorf("a review failed after %v: %v", time.Since(start), err)
		return
	}
	text, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || !bytes.Contains(text, []byte(`"allowed":true`)) {
		r.Errorf("a review was answered %s %s %v", response.Status, text, err)
	}
	r.sent.Add(1)
	for took := int64(time.Since(start)); ; {
		if most := r.slowest.Load(); took <= most || r.slowest.CompareAndSwap(most, took) {
			return
		}
	}
}

// sendMore waits until so many more reviews have been sent.
func (r *reviews) sendMore(n int64) {
	r.Helper()
	before := r.sent.Load()
	for deadline := time.Now().Add(time.Minute); r.sent.Load() < before+n; time.Sleep(time.Millisecond) {
		if r.Failed() || time.Now().After(deadline) {
			r.Fatalf("%d of %d reviews were answered during the attack", r.sent.Load()-before, n)
		}
	}
}

func (r *reviews) stop() int64 {
	r.cancel()
	r.clients.Wait()
	return r.sent.Load()
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

func startAttack(t *testing.T, address, source string, connections int, attack attack) *attackers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	a := &attackers{begun: make(chan struct{})}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: 10 * time.Second}
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

func announce(length int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", unitedDeploymentPath, length)
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

func headersByteByByte(conn net.Conn, begun func()) {
	drip(secured(conn), begun, "POST "+unitedDeploymentPath+" HTTP/1.1\r\nHost: a\r\nX-Long: ")
}

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

func noHandshake(conn net.Conn, begun func()) { waitFor(conn, begun) }

func bodyThatStops(conn net.Conn, begun func()) {
	client := secured(conn)
	_, _ = io.WriteString(client, announce(201<<10)+strings.Repeat(" ", 200<<10))
	waitFor(client, begun)
}

// largeBodies sends reviews of 7 MiB, one after another, of an object that has to be decoded.
func largeBodies(conn net.Conn, begun func()) {
	begun()
	client := secured(conn)
	prefix, suffix, _ := strings.Cut(unitedDeployment, `"spec"`)
	labels := strings.Repeat(`{"a": "b"}, `, (7<<20-len(unitedDeployment)-100)/12)
	review := prefix + `"list": [` + labels + `{}], "spec"` + suffix
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
