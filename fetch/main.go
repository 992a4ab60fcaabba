// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Program fetch-model fetches the model of a ModelBox into a volume, verifies it, and unpacks it. An init container runs
// it; see docs/models.md. It executes no program and loads no model.
package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

// interrupted is the exit code after SIGTERM, as shells have it.
const interrupted = 128 + int(syscall.SIGTERM)

func main() {
	syscall.Umask(0o022) // The server may run as another user than the fetcher.
	os.Exit(run(os.Args[1:], os.Getenv, report.NewLog(os.Stdout), guard.Options{}))
}

// run returns the exit code: 0, 1 after a failure, and 143 after a signal.
func run(args []string, getenv func(string) string, log *report.Log, client guard.Options) int {
	flags, err := parse(args)
	ender := &ender{log: log, terminationLog: flags.terminationLog}
	if err != nil {
		return ender.end(failure.Of(err))
	}
	stop := ender.onSignal()
	defer stop()
	if err := fetch(context.Background(), flags, getenv, log, client); err != nil {
		return ender.end(failure.Of(err))
	}
	return 0
}

// ender writes the last word, once.
type ender struct {
	once           sync.Once
	log            *report.Log
	terminationLog string
}

func (e *ender) end(last *failure.Failure) int {
	e.once.Do(func() { e.log.LastWord(e.terminationLog, last) })
	return 1
}

// onSignal ends the process at once when it gets SIGTERM or SIGINT. What it leaves in the work directory, the next start
// removes: that is quicker than to wait for the volume.
func (e *ender) onSignal() (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		if _, open := <-signals; open {
			e.end(failure.Of(context.Canceled))
			os.Exit(interrupted)
		}
	}()
	return func() { signal.Stop(signals); close(signals) }
}
