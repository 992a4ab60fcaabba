// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rows measures: one file for each thing that there is a budget for.
package rows

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/modelbox-operator/modelbox-operator/bench/contestant"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

// Bench is a run of the benchmarks.
type Bench struct {
	*report.Report
	// Objects is how many objects are created at once, Rounds how often
	// each contestant takes its turn.
	Objects, Rounds int
	// LongRounds is the same for what takes minutes a round, if it is less: memory and
	// Erus.
	LongRounds int
	// SlowRounds is the same for contestants that are slow by their own limits.
	SlowRounds int
	// MemoryFrom and MemoryTo are between which counts of objects the slope of
	// memory is taken.
	MemoryFrom, MemoryTo int
	// MemoryRest is how long a process rests before its memory is read, because Go
	// gives memory back in the background. The collection that it makes by itself
	// every two minutes is asked for, so that nobody has to wait for it.
	MemoryRest time.Duration
	// Profiles is a directory that gets a heap profile for each reading of memory;
	// none if empty.
	Profiles string
	// Growth are the counts of objects at which the growth of cost is taken, and
	// GrowthRounds is how often at each.
	Growth       Counts
	GrowthRounds int
	// Failovers is how often a leader is killed.
	Failovers int
	// Contestants are who takes part.
	Contestants []*contestant.Contestant
	// Patience is how long a contestant may take for one turn.
	Patience time.Duration
	// Out gets a line for each thing that is done.
	Out io.Writer
}

// Group is a measurement that can be asked for by name.
type Group struct {
	Name string
	Run  func(*Bench, context.Context) error
}

// Groups are all measurements, in their order.
func Groups() []Group {
	return []Group{
		{"created", (*Bench).created},
		{"memory", (*Bench).memory},
		{"webhook", (*Bench).webhook},
		{"failover", (*Bench).failover},
		{"latency", (*Bench).latency},
		{"eru", (*Bench).erus},
		{"growth", (*Bench).growth},
	}
}

func (b *Bench) say(format string, args ...any) {
	fmt.Fprintf(b.Out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// turns is whose turn it is, round by round: forth, then back (ABBA), so that a
// machine that gets slower or faster meanwhile does so to all alike.
func (b *Bench) turns(rounds int, of []*contestant.Contestant, turn func(round int, c *contestant.Contestant) error) error {
	for round := range rounds {
		order := slices.Clone(of)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, c := range order {
			if c.Slow && round >= b.SlowRounds {
				continue
			}
			if err := turn(round, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// takingPart are those of the contestants named who take part.
func (b *Bench) takingPart(names ...string) []*contestant.Contestant {
	var out []*contestant.Contestant
	for _, c := range b.Contestants {
		if slices.Contains(names, c.Name) {
			out = append(out, c)
		}
	}
	return out
}
