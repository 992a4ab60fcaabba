// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package operator

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/modelbox-operator/modelbox-operator/hack/local/process"
	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

// kept is a process that is kept running, with a clock that stands still.
type kept struct {
	*Operator
	t     *testing.T
	clock *clocktesting.FakeClock
	dir   string
	// lines are what was reported, one at a time.
	lines chan string
	end   func()
}

// keep keeps a script running as the controller, beside a webhook that never exits.
func keep(t *testing.T, script string) *kept {
	t.Helper()
	k := &kept{t: t, clock: clocktesting.NewFakeClock(time.Unix(0, 0)), dir: t.TempDir(), lines: make(chan string, 100)}
	k.Operator = &Operator{Webhook: k.start("webhook", forever), Controller: k.start("controller", script)}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { k.KeepRunning(ctx, progress.New(k, false), k.clock) })
	k.end = func() {
		cancel()
		group.Wait()
	}
	t.Cleanup(func() {
		k.end()
		_ = k.Stop() // A script that is ended before it can say so is no failure.
	})
	return k
}

func (k *kept) start(name, script string) *Server {
	k.t.Helper()
	spec := process.Spec{Name: name, Path: filepath.Join(k.dir, name), Dir: k.dir, Out: process.NewOutput(io.Discard, false)}
	if err := os.WriteFile(spec.Path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		k.t.Fatal(err)
	}
	p, err := process.Start(spec)
	if err != nil {
		k.t.Fatal(err)
	}
	return &Server{Process: p, spec: spec}
}

// Write implements [io.Writer]: a report is one line.
func (k *kept) Write(line []byte) (int, error) {
	k.lines <- string(bytes.TrimSpace(line))
	return len(line), nil
}

// reports waits for the next line.
func (k *kept) reports(want string) {
	k.t.Helper()
	select {
	case line := <-k.lines:
		if line != want {
			k.t.Fatalf("it reported %q, want %q", line, want)
		}
	case <-time.After(30 * time.Second):
		k.t.Fatalf("nothing was reported, want %q", want)
	}
}

// pass lets time pass, once something waits for it.
func (k *kept) pass(d time.Duration) {
	k.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !k.clock.HasWaiters(); {
		if time.Now().After(deadline) {
			k.t.Fatal("nothing waits for the clock")
		}
	}
	k.clock.Step(d)
}

func TestAProcessThatExitsIsReportedAndStartedAgain(t *testing.T) {
	t.Parallel()
	k := keep(t, fails)
	for _, delay := range []string{"1s", "2s", "4s", "8s", "16s", "30s", "30s"} {
		k.reports("controller ended: exit status 7; starting it again in " + delay)
		wait, err := time.ParseDuration(delay)
		if err != nil {
			t.Fatal(err)
		}
		k.pass(wait - time.Nanosecond)
		k.pass(time.Nanosecond)
		k.reports("the controller was started again")
	}
	select {
	case <-k.Webhook.Done():
		t.Error("the webhook ended with the controller")
	default:
	}
}

func TestAProcessThatRanForAMinuteIsStartedAgainSoon(t *testing.T) {
	t.Parallel()
	k := keep(t, `while [ ! -e exit ]; do sleep 0.02; done; rm exit; exit 7`)
	exit := func() {
		if err := os.WriteFile(filepath.Join(k.dir, "exit"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, delay := range []time.Duration{time.Second, 2 * time.Second} {
		exit()
		k.reports("controller ended: exit status 7; starting it again in " + delay.String())
		k.pass(delay)
		k.reports("the controller was started again")
	}
	k.clock.Step(time.Minute)
	exit()
	k.reports("controller ended: exit status 7; starting it again in 1s")
}

func TestAnInterruptionEndsTheWaitForARestart(t *testing.T) {
	t.Parallel()
	k := keep(t, fails)
	k.reports("controller ended: exit status 7; starting it again in 1s")
	k.end()
	_ = k.Stop()
	for _, server := range k.servers() {
		select {
		case <-server.Done():
		default:
			t.Errorf("the %s still runs", server.Name())
		}
	}
}

func TestAProcessThatCannotBeStartedIsTriedAgain(t *testing.T) {
	t.Parallel()
	k := keep(t, `rm "$0"; exit 7`)
	k.reports("controller ended: exit status 7; starting it again in 1s")
	k.pass(time.Second)
	if line := <-k.lines; !strings.HasPrefix(line, "starting controller: ") {
		t.Fatalf("it reported %q, want why it cannot be started", line)
	}
	k.reports("controller ended: exit status 7; starting it again in 2s")
}
