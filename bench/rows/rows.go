// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rows holds the measurements, one file for each group of budgets.
package rows

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/modelbox-operator/modelbox-operator/bench/implementation"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

// Bench is a run of the benchmarks.
type Bench struct {
	*report.Report
	// Objects is how many objects are created at once, and Rounds how often each
	// implementation is measured.
	Objects, Rounds int
	// LongRounds is the number of rounds for memory and Erus, which take minutes a round,
	// if it is lower than Rounds.
	LongRounds int
	// SlowRounds is the number of rounds for implementations that are slow because of
	// their own rate limits.
	SlowRounds int
	// MemoryFrom and MemoryTo are the numbers of objects between which memory per object
	// is measured.
	MemoryFrom, MemoryTo int
	// MemoryRest is how long a process is idle before its memory is read, because Go
	// returns memory to the system in the background. The garbage collection that Go
	// runs at least every two minutes is triggered before, to save that time.
	MemoryRest time.Duration
	// Profiles is a directory for a heap profile for each reading of memory; there are
	// none if it is empty.
	Profiles string
	// Growth holds the numbers of objects at which the growth of cost is measured, and
	// GrowthRounds is how often at each.
	Growth       Counts
	GrowthRounds int
	// Noisy is the number of objects in the namespace whose objects change all the time.
	Noisy int
	// Failovers is how often a leader is killed.
	Failovers int
	// Implementations are the implementations that are compared.
	Implementations []*implementation.Implementation
	// Timeout is how long one run of an implementation may take.
	Timeout time.Duration
	// Out is where progress is written, one line for each step.
	Out io.Writer
}

// Group is a measurement that can be selected by name.
type Group struct {
	Name string
	Run  func(*Bench, context.Context) error
}

// Groups returns all measurements in their order.
func Groups() []Group {
	return []Group{
		{"created", (*Bench).created},
		{"memory", (*Bench).memory},
		{"webhook", (*Bench).webhook},
		{"failover", (*Bench).failover},
		{"latency", (*Bench).latency},
		{"eru", (*Bench).erus},
		{"growth", (*Bench).growth},
		{"noisy", (*Bench).noisy},
	}
}

func (b *Bench) logf(format string, args ...any) {
	fmt.Fprintf(b.Out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// alternate calls run for each implementation in each round, in alternating order
// (ABBA), so that a machine that becomes slower or faster affects all alike.
func (b *Bench) alternate(rounds int, of []*implementation.Implementation, run func(round int, c *implementation.Implementation) error) error {
	for round := range rounds {
		order := slices.Clone(of)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, c := range order {
			if c.Slow && round >= b.SlowRounds {
				continue
			}
			if err := run(round, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// selected returns those of the named implementations that are compared in this run.
func (b *Bench) selected(names ...string) []*implementation.Implementation {
	var out []*implementation.Implementation
	for _, c := range b.Implementations {
		if slices.Contains(names, c.Name) {
			out = append(out, c)
		}
	}
	return out
}
