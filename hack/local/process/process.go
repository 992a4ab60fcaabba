// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs programs in the foreground: their output is prefixed
// with who wrote it, and they end in an orderly way with the command that
// started them.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Spec describes a program to run.
type Spec struct {
	// Name is the prefix of its output.
	Name string
	// Path is the executable and Args its arguments.
	Path string
	Args []string
	// Dir is its working directory; empty for that of the caller.
	Dir string
	// Out gets the lines of its standard output and standard error.
	Out *Output
}

// Process is a program that was started.
type Process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// Start starts a program. It is in a process group of its own, because a
// Ctrl-C goes to all of a terminal's group and would reach it beside the
// signal of [Process.Stop]: a second signal makes many programs end at once
// instead of in order. On Linux it also ends with this process.
func Start(spec Spec) (*Process, error) {
	out := spec.Out.writer(spec.Name)
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Dir = spec.Dir
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = attributes()
	// A child of the program may hold its output open after it has ended.
	cmd.WaitDelay = time.Second
	p := &Process{name: spec.Name, cmd: cmd, done: make(chan struct{})}

	started := make(chan error)
	go func() {
		// The parent's death is noticed by the thread that started the
		// program, so that thread has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		_ = out.Close()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	return p, nil
}

// Name is the name given in the Spec.
func (p *Process) Name() string { return p.name }

// PID is the number of the process, for signals that Stop does not send.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the program has ended and its output is complete.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the program ended: nil for exit code 0. Call it after Done.
func (p *Process) Err() error {
	if p.err != nil {
		return fmt.Errorf("%s ended: %w", p.name, p.err)
	}
	return nil
}

// Stop asks the program to end (SIGTERM), waits for that at most as long as
// grace, and kills it then. It fails if the program did not end by itself with
// exit code 0, and does nothing but say so if it had ended before.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("asking %s to end: %w", p.name, err)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.Err()
	case <-timer.C:
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	<-p.done
	return fmt.Errorf("%s did not end within %s and was killed", p.name, grace)
}
