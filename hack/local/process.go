// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	readyWithin = time.Minute
	// endWithin is longer than the processes' own time to drain.
	endWithin = 45 * time.Second
)

// process is a running program.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // Set before done is closed.
}

// startProcess starts a program, whose lines of output have its name before them, in a process group
// of its own: otherwise a Ctrl-C would reach it in addition to the signal of stop.
func startProcess(name string, cmd *exec.Cmd, out io.Writer) (*process, error) {
	lines := &prefixed{prefix: fmt.Sprintf("%-10s | ", name), out: out}
	cmd.Stdout, cmd.Stderr = lines, lines
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// ended is the error of a process that ended while it was needed.
func (p *process) ended() error {
	if p.err != nil {
		return fmt.Errorf("the %s ended: %w", p.name, p.err)
	}
	return fmt.Errorf("the %s ended unexpectedly", p.name)
}

// awaitReady returns when the process answers 200 at a URL.
func (p *process) awaitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("the %s is not ready after %s", p.name, readyWithin))
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for !ready(ctx, url) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.done:
			return p.ended()
		case <-ticker.C:
		}
	}
	return nil
}

func ready(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// stop sends SIGTERM, and kills the process if it does not end in time. A process that has ended is no
// error: wait has returned it.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // It fails only if the process has ended.
	select {
	case <-p.done:
		return nil
	case <-time.After(endWithin):
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("the %s did not end within %s and was killed", p.name, endWithin)
}

// prefixed writes whole lines, with a prefix.
type prefixed struct {
	prefix string
	out    io.Writer
	mutex  sync.Mutex
	rest   []byte
}

// Write implements [io.Writer].
func (p *prefixed) Write(content []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.rest = append(p.rest, content...)
	for {
		line, rest, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			return len(content), nil
		}
		if _, err := fmt.Fprintf(p.out, "%s%s\n", p.prefix, line); err != nil {
			return 0, err
		}
		p.rest = rest
	}
}
