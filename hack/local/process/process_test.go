// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/modelbox-operator/modelbox-operator/hack/local/process"
)

// buffer is a writer that is safe for concurrent use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// await polls until the output contains text.
func (b *buffer) await(t *testing.T, text string) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for !strings.Contains(b.String(), text) {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%q never appeared in %q", text, b.String())
		}
	}
}

func start(t *testing.T, script string) (*process.Process, *buffer) {
	t.Helper()
	var out buffer
	p, err := process.Start(process.Spec{
		Name: "web", Path: "/bin/sh", Args: []string{"-c", script}, Dir: t.TempDir(), Out: process.NewOutput(&out, false),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(0) })
	return p, &out
}

func TestStop(t *testing.T) {
	t.Parallel()
	const loop = `echo up; while :; do sleep 0.02; done`
	tests := map[string]struct {
		script  string
		grace   time.Duration
		wantErr string // empty: none
		wantOut string
	}{
		"a program that ends gracefully": {
			script: `trap 'echo bye; exit 0' TERM; ` + loop, grace: 20 * time.Second, wantOut: "web        | up\nweb        | bye\n",
		},
		"a program that ends with an error": {
			script: `trap 'exit 3' TERM; ` + loop, grace: 20 * time.Second,
			wantErr: "web ended: exit status 3", wantOut: "web        | up\n",
		},
		"a program that ignores SIGTERM": {
			script: `trap '' TERM; ` + loop, grace: 200 * time.Millisecond,
			wantErr: "web did not end within 200ms and was killed", wantOut: "web        | up\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, out := start(t, test.script)
			out.await(t, "up\n")
			err := p.Stop(test.grace)
			if got := fmt.Sprint(err); (err != nil || test.wantErr != "") && got != test.wantErr {
				t.Errorf("got %v, want %q", err, test.wantErr)
			}
			<-p.Done()
			if diff := cmp.Diff(test.wantOut, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDone(t *testing.T) {
	t.Parallel()
	p, out := start(t, `echo one; echo two >&2; printf three; exit 4`)
	<-p.Done()
	if err := p.Err(); err == nil || err.Error() != "web ended: exit status 4" {
		t.Errorf("got %v, want exit status 4", err)
	}
	want := "web        | one\nweb        | two\nweb        | three\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if err := p.Stop(time.Second); err == nil {
		t.Error("stopping a failed program returned no error")
	}
}

func TestStartOfAMissingProgram(t *testing.T) {
	t.Parallel()
	_, err := process.Start(process.Spec{Name: "web", Path: "/no/such/program", Out: process.NewOutput(&buffer{}, false)})
	if err == nil || !strings.Contains(err.Error(), "starting web") {
		t.Errorf("got %v", err)
	}
}

// A Ctrl-C must not reach the program in addition to the signal of Stop.
func TestProcessGroupIsItsOwn(t *testing.T) {
	t.Parallel()
	p, _ := start(t, `sleep 60`)
	group, err := syscall.Getpgid(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	if ours := syscall.Getpgrp(); group == ours || group != p.PID() {
		t.Errorf("process %d is in group %d, this test in %d", p.PID(), group, ours)
	}
}

func TestOutputKeepsLinesWhole(t *testing.T) {
	t.Parallel()
	var out buffer
	shared := process.NewOutput(&out, true)
	var running []*process.Process
	for i := range 3 {
		name := "p" + strconv.Itoa(i)
		p, err := process.Start(process.Spec{
			Name: name, Path: "/bin/sh", Out: shared,
			Args: []string{"-c", `for i in 1 2 3 4 5 6 7 8 9; do printf ` + name + `; printf -- '-%s\n' $i; done`},
		})
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, p)
	}
	for _, p := range running {
		<-p.Done()
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if len(lines) != 27 {
		t.Fatalf("%d lines, want 27:\n%s", len(lines), out.String())
	}
	for _, line := range lines {
		name := line[len("\x1b[36m"):][:2]
		if !strings.Contains(line, "| \x1b[0m"+name+"-") {
			t.Errorf("a mixed line: %q", line)
		}
	}
}
