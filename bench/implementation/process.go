// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package implementation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/modelbox-operator/modelbox-operator/bench/controlplane"
)

// Process is a running program.
type Process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error // set before done is closed
}

// RunAs is Run with the credentials of an account.
func RunAs(program Program, log string, account *controlplane.Account, flags ...string) (*Process, error) {
	return Run(program, log, append([]string{"--kubeconfig=" + account.Kubeconfig}, flags...)...)
}

// Run starts a program. Its output goes directly to a file, so that only the program itself
// spends CPU time on its logs.
func Run(program Program, log string, flags ...string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	p := &Process{log: log, done: make(chan struct{})}
	p.cmd = exec.Command(program.path(), flags...)
	p.cmd.Stdout, p.cmd.Stderr = file, file
	// The process must not outlive this one, also when this one is killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go p.follow(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", program.name, err)
	}
	return p, nil
}

// follow starts the process and waits for it. It stays on one thread because Pdeathsig
// is sent when the thread that started the process ends (prctl(2)).
func (p *Process) follow(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err == nil {
		p.err = p.cmd.Wait()
		close(p.done)
	}
}

// Path returns the program's file.
func (p *Process) Path() string { return p.cmd.Path }

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Processes returns the process as a list, to read its CPU time.
func (p *Process) Processes() controlplane.Processes { return controlplane.Processes{p.PID()} }

// Alive returns an error if the process has ended, with the end of its log.
func (p *Process) Alive() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended unexpectedly: %w; the end of its log:\n%s", p.cmd.Path, cmp.Or(p.err, errors.New("exit status 0")), logTail(p.log))
	default:
		return nil
	}
}

// Stop sends SIGTERM, and SIGKILL after ten seconds.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		p.Kill()
	}
}

// Kill sends SIGKILL and waits for the end of the process.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// WaitIdle waits until the process is idle, that is, until it uses at most 30 ms of CPU
// time in a second. What it does after the last write, such as no-op reconciles, is part
// of the cost of an object.
func (p *Process) WaitIdle(ctx context.Context, within time.Duration) error {
	const quiet, interval = 30 * time.Millisecond, time.Second
	deadline := time.Now().Add(within)
	for time.Now().Before(deadline) {
		before, err := p.Processes().CPU()
		if err != nil {
			return errors.Join(p.Alive(), err)
		}
		if err := controlplane.Pause(ctx, interval); err != nil {
			return err
		}
		after, err := p.Processes().CPU()
		if err != nil {
			return errors.Join(p.Alive(), err)
		}
		if after-before <= quiet {
			return nil
		}
	}
	return nil
}
