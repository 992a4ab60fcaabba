// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs programs in the foreground: their output is prefixed with the
// program's name, and they end gracefully with the command that started them.
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
	// Env is added to the environment of the caller, as KEY=value.
	Env []string
	// Dir is its working directory, or empty for that of the caller.
	Dir string
	// Out is where its standard output and standard error are written.
	Out *Output
}

// Process is a running program.
type Process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// Start starts a program in a process group of its own. Otherwise a Ctrl-C, which goes
// to the foreground process group of a terminal, would reach it in addition to the signal
// of [Process.Stop], and a second signal makes many programs end without a graceful
// shutdown. On Linux the program also ends with this process.
func Start(spec Spec) (*Process, error) {
	out := spec.Out.writer(spec.Name)
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Dir = spec.Dir
	cmd.Env = append(cmd.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = attributes()
	// A child of the program may keep its output open after it has ended.
	cmd.WaitDelay = time.Second
	p := &Process{name: spec.Name, cmd: cmd, done: make(chan struct{})}

	started := make(chan error)
	go func() {
		// Pdeathsig is sent when the thread that started the program ends, so this
		// thread must not end.
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

// Name returns the name in the Spec.
func (p *Process) Name() string { return p.name }

// PID returns the process ID, for signals that Stop does not send.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the program has ended and its output is
// complete.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the program ended: nil for exit code 0. Call it after Done.
func (p *Process) Err() error {
	if p.err != nil {
		return fmt.Errorf("%s ended: %w", p.name, p.err)
	}
	return nil
}

// Stop sends SIGTERM to the program, waits for its end at most as long as grace, and
// then kills it. It returns an error unless the program ended with exit code 0 and was
// not killed, also if it had ended before.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending SIGTERM to %s: %w", p.name, err)
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
