// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelbox-operator/modelbox-operator/bench/contestant"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

// perObject is the one quantity of the group "growth" that "created" has not. It is
// what all objects took, divided by their number: several are worked on at once, so
// each of them waits for longer.
const perObject = "time per object"

// growthPatience is the least that a turn may take for each object. A burst of many
// takes longer for each than one of few, so a limit that is ample for the one may be
// too little for the other.
const growthPatience = 200 * time.Millisecond

// Counts are numbers of objects, the fewest first. It is a flag.Value.
type Counts []int

func (c *Counts) String() string {
	var fields []string
	for _, n := range *c {
		fields = append(fields, strconv.Itoa(n))
	}
	return strings.Join(fields, ",")
}

// Set reads counts with commas between them.
func (c *Counts) Set(text string) error {
	var counts Counts
	last := 0
	for field := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a number of objects", field)
		}
		if n <= last {
			return fmt.Errorf("%d comes after %d: the fewest come first, and none twice", n, last)
		}
		counts, last = append(counts, n), n
	}
	*c = counts
	return nil
}

// growth measures what a new object costs when it is one of few and when it is one
// of many: turns as those of "created", with more and more objects. What the raw
// client's cost grows by is the API server's doing, and the rest is ours.
//
// All counts take their turns before one takes its second, and they count as rounds
// of their own: a machine that gets slower meanwhile then does so neither to the high
// counts nor to one contestant alone.
func (b *Bench) growth(ctx context.Context) error {
	const group = "growth"
	failed := map[string]bool{}
	who := b.takingPart("ours", "raw")
	err := b.turns(b.GrowthRounds*len(b.Growth), who, func(round int, c *contestant.Contestant) error {
		if failed[c.Name] {
			return nil
		}
		n := b.Growth[round%len(b.Growth)]
		b.say("growth: round %d of %d: %s with %d objects", round/len(b.Growth)+1, b.GrowthRounds, c.Name, n)
		sample, err := b.with(n).turn(ctx, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			// Who cannot finish with so many will not with more.
			failed[c.Name] = true
			b.Fail(fmt.Sprintf("%s: %s with %d objects", group, c.Name, n), err)
			b.say("  failed: %v", err)
			return nil
		}
		b.say("  %s", sample.noteGrowth(b.Report, group, c.Name, n))
		return nil
	})
	if err != nil {
		return err
	}
	b.judgeGrowth(group, who)
	return nil
}

// with is the same bench for another number of objects, and with patience for them.
func (b *Bench) with(objects int) *Bench {
	other := *b
	other.Objects = objects
	other.Patience = max(b.Patience, time.Duration(objects)*growthPatience)
	return &other
}

// noteGrowth notes a turn under quantities that name the number of objects, because
// each number is a measurement of its own and not another round of one.
func (s sample) noteGrowth(r *report.Report, group, name string, objects int) string {
	n := float64(objects)
	for _, quantity := range []struct {
		name, unit string
		value      float64
	}{
		{perObject, "ms", milliseconds(s.took) / n},
		{serverCPU, "ms", milliseconds(s.server) / n},
		{ownCPU, "ms", milliseconds(s.own) / n},
		{writes, "", float64(s.requests.AllWrites()) / n},
		{reads, "", float64(s.requests.Reads()) / n},
		{residentAfter, "MiB", float64(s.memory) / (1 << 20)},
	} {
		r.Note(group, name, at(quantity.name, objects), quantity.unit, quantity.value)
	}
	return fmt.Sprintf("for each %.1f ms; CPU %.1f ms of the API server and etcd, %.1f ms own; memory %d MiB; %s",
		milliseconds(s.took)/n, milliseconds(s.server)/n, milliseconds(s.own)/n, s.memory>>20, s.requests)
}

// at is the name of a quantity at a number of objects, as bench/plot reads it.
func at(quantity string, objects int) string { return fmt.Sprintf("%s, %d", quantity, objects) }

func milliseconds(d time.Duration) float64 { return 1000 * d.Seconds() }

// judgeGrowth says by how much an object of the most costs more than one of the
// fewest. Nobody has set a budget for that.
func (b *Bench) judgeGrowth(group string, who []*contestant.Contestant) {
	few, many := b.Growth[0], b.Growth[len(b.Growth)-1]
	if few == many {
		return
	}
	for _, quantity := range []string{perObject, serverCPU, ownCPU} {
		for _, c := range who {
			of := func(objects int) []float64 { return b.Of(group, c.Name, at(quantity, objects)) }
			name := fmt.Sprintf("%s, %d / %d: %s", quantity, many, few, c.Name)
			b.Add(report.Row{Group: group, Name: name, NoBudget: true, Values: report.Ratios(of(many), of(few))})
		}
	}
}
