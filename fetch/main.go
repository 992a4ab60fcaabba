// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Program fetch-model fetches the model of a ModelBox into a volume, verifies it, and unpacks it. An init container runs
// it; see docs/models.md. It executes no program and loads no model.
package main

import (
	"context"
	"hash/crc32"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

// interrupted is the exit code after SIGTERM, as shells have it.
const interrupted = 128 + int(syscall.SIGTERM)

// memoryLimit is how many bytes the garbage collector keeps the program below, which is less than the 128 MiB that docs/models.md says.
const memoryLimit = 96 << 20

func main() {
	syscall.Umask(0o022)              // The server may run as another user than the fetcher.
	debug.SetMemoryLimit(memoryLimit) // What is live is less: only a list that a server sends makes much garbage.
	os.Exit(run(os.Args[1:], os.Getenv, report.NewLog(os.Stdout), guard.Options{}))
}

// run returns the exit code: 0, 1 after a failure, and 143 after a signal.
func run(args []string, getenv func(string) string, log *report.Log, client guard.Options) int {
	getenv = log.Hiding(getenv)
	for _, arg := range args {
		log.HideWithin(arg)
	}
	flags, err := parse(args)
	var once sync.Once
	end := func(err error) int {
		once.Do(func() { log.LastWord(flags.terminationLog, failure.Of(err)) })
		return 1
	}
	if err != nil {
		return end(err)
	}
	name, _ := os.Hostname() // That of the pod. Without one, it waits no longer than servers say.
	flags.downloader.Spread = float64(crc32.ChecksumIEEE([]byte(name))) / math.MaxUint32
	signaled, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// What it leaves in the work directory, the next start removes: that is quicker than to wait for the volume.
	defer context.AfterFunc(signaled, func() {
		end(context.Canceled)
		os.Exit(interrupted)
	})()
	models, err := fetch(context.Background(), flags, getenv, log, client)
	if err != nil {
		return end(err)
	}
	once.Do(func() { log.Success(flags.terminationLog, models) })
	return 0
}
