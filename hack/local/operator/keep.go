// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/modelbox-operator/modelbox-operator/hack/local/process"
	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

// A process that exits is started again after firstDelay; each time that it exits
// again doubles the delay, up to longestDelay. One that has run for steadyAfter
// begins with firstDelay again.
const (
	firstDelay, longestDelay = time.Second, 30 * time.Second
	steadyAfter              = time.Minute
)

func newBackoff() wait.Backoff {
	const enough = 16 // Steps; at the cap there are none left, and the delay stays.
	return wait.Backoff{Duration: firstDelay, Factor: 2, Cap: longestDelay, Steps: enough}
}

// KeepRunning reports when a process exits and starts it again, until ctx ends. The
// other process keeps running meanwhile. Call Stop afterwards.
func (r *Operator) KeepRunning(ctx context.Context, report *progress.Reporter, clk clock.Clock) {
	var group sync.WaitGroup
	for _, server := range r.servers() {
		group.Go(func() { server.keepRunning(ctx, report, clk) })
	}
	group.Wait()
}

func (s *Server) keepRunning(ctx context.Context, report *progress.Reporter, clk clock.Clock) {
	backoff, started := newBackoff(), clk.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.Done():
		}
		if clk.Since(started) >= steadyAfter {
			backoff = newBackoff()
		}
		delay := backoff.Step()
		report.Say("%v; starting it again in %s", s.unexpected(), delay)
		select {
		case <-ctx.Done():
			return
		case <-clk.After(delay):
		}
		started = clk.Now()
		s.restart(report)
	}
}

// restart starts the process again. Where that fails, the process stays as it is,
// ended, so that there is another attempt.
func (s *Server) restart(report *progress.Reporter) {
	again, err := process.Start(s.spec)
	if err != nil {
		report.Say("%v", err)
		return
	}
	s.Process = again
	report.Say("the %s was started again", s.Name())
}

// During runs a function while both processes run. When one of them exits, the
// function's context ends, and the error says which process exited and why.
func (r *Operator) During(ctx context.Context, do func(context.Context) error) error {
	during, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	for _, server := range r.servers() {
		group.Go(func() {
			select {
			case <-during.Done():
			case <-server.Done():
				cancel(server.unexpected())
			}
		})
	}
	err := do(during)
	exited := context.Cause(during)
	cancel(nil)
	group.Wait()
	if exited == nil || ctx.Err() != nil {
		return err
	}
	return errors.Join(exited, err)
}
