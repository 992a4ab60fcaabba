// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package contestant

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/modelbox-operator/modelbox-operator/bench/plane"
)

// Process is a program that runs.
type Process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error // set before done is closed
}

// Run starts a program as an account. What it writes goes straight to a file, so
// that nobody but the program pays for its words.
func Run(program Program, log string, account *plane.Account, flags ...string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	p := &Process{log: log, done: make(chan struct{})}
	p.cmd = exec.Command(program.path(), append([]string{"--kubeconfig=" + account.Kubeconfig}, flags...)...)
	p.cmd.Stdout, p.cmd.Stderr = file, file
	// It must not outlive the harness, however that ends.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go p.follow(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", program.name, err)
	}
	return p, nil
}

// follow keeps to one thread: Pdeathsig is sent when the thread that started the
// process ends (prctl(2)).
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

// Path is the program's file.
func (p *Process) Path() string { return p.cmd.Path }

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Processes is the process, to read its CPU time.
func (p *Process) Processes() plane.Processes { return plane.Processes{p.PID()} }

// Alive says, by an error, that the process has ended although nobody asked it to.
func (p *Process) Alive() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended by itself: %w; its last words:\n%s", p.cmd.Path, errors.Join(p.err, errors.New("nobody asked it to")), logTail(p.log))
	default:
		return nil
	}
}

// Stop asks the process to end, and after ten seconds sees to it.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		p.Kill()
	}
}

// Kill ends the process at once.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Settle waits until the process rests: until it uses less than a thirtieth of a
// CPU for a second. What comes after the last write, such as reconciles that find
// nothing to do, is part of what an object costs.
func (p *Process) Settle(ctx context.Context, within time.Duration) error {
	const quiet, interval = 30 * time.Millisecond, time.Second
	deadline := time.Now().Add(within)
	for time.Now().Before(deadline) {
		before, err := p.Processes().CPU()
		if err != nil {
			return errors.Join(p.Alive(), err)
		}
		if err := plane.Pause(ctx, interval); err != nil {
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

// Addresses are addresses of this machine that nobody listens on.
func Addresses(n int) ([]string, error) {
	var addresses []string
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer func() { _ = listener.Close() }()
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}
