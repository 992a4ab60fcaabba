// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelbox-operator/modelbox-operator/bench/implementation"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

// perObject is the only quantity of the group "growth" that "created" does not have. It
// is the time for all objects divided by their number: several objects are reconciled at
// the same time, so the latency of each is longer.
const perObject = "time per object"

// growthTimeout is the minimum timeout for each object. With many objects each one takes
// longer than with few, so a timeout that is long enough for few may be too short for
// many.
const growthTimeout = 200 * time.Millisecond

// Counts are numbers of objects in ascending order. It is a flag.Value.
type Counts []int

func (c *Counts) String() string {
	var fields []string
	for _, n := range *c {
		fields = append(fields, strconv.Itoa(n))
	}
	return strings.Join(fields, ",")
}

// Set parses numbers that are separated by commas.
func (c *Counts) Set(text string) error {
	var counts Counts
	last := 0
	for field := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a number of objects", field)
		}
		if n <= last {
			return fmt.Errorf("%d comes after %d: the numbers must be ascending and unique", n, last)
		}
		counts, last = append(counts, n), n
	}
	*c = counts
	return nil
}

// growth measures how the cost of a new object depends on the number of objects: the
// runs are those of "created", with more and more objects. The API server causes the
// growth of the raw client's cost; the rest is the operator's.
//
// Each number of objects is measured once before one is measured again, and is a round
// of its own: a machine that becomes slower then affects neither only the high numbers
// nor only one implementation.
func (b *Bench) growth(ctx context.Context) error {
	const group = "growth"
	failed := map[string]bool{}
	implementations := b.selected("ours", "raw")
	err := b.alternate(b.GrowthRounds*len(b.Growth), implementations, func(round int, c *implementation.Implementation) error {
		if failed[c.Name] {
			return nil
		}
		n := b.Growth[round%len(b.Growth)]
		b.logf("growth: round %d of %d: %s with %d objects", round/len(b.Growth)+1, b.GrowthRounds, c.Name, n)
		sample, err := b.with(n).run(ctx, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			// An implementation that fails with so many objects also fails with more.
			failed[c.Name] = true
			b.Fail(fmt.Sprintf("%s: %s with %d objects", group, c.Name, n), err)
			b.logf("  failed: %v", err)
			return nil
		}
		b.logf("  %s", sample.recordGrowth(b.Report, group, c.Name, n))
		return nil
	})
	if err != nil {
		return err
	}
	b.addGrowthRows(group, implementations)
	return nil
}

// with returns the bench for another number of objects, with a sufficient timeout.
func (b *Bench) with(objects int) *Bench {
	other := *b
	other.Objects = objects
	other.Timeout = max(b.Timeout, time.Duration(objects)*growthTimeout)
	return &other
}

// recordGrowth records a run under quantities that include the number of objects,
// because each number is a separate measurement and not another round of the same.
func (s sample) recordGrowth(r *report.Report, group, name string, objects int) string {
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
		r.Record(group, name, at(quantity.name, objects), quantity.unit, quantity.value)
	}
	return fmt.Sprintf("for each %.1f ms; CPU %.1f ms of the API server and etcd, %.1f ms own; memory %d MiB; %s",
		milliseconds(s.took)/n, milliseconds(s.server)/n, milliseconds(s.own)/n, s.memory>>20, s.requests)
}

// at returns the name of a quantity at a number of objects, as bench/plot parses it.
func at(quantity string, objects int) string { return fmt.Sprintf("%s, %d", quantity, objects) }

func milliseconds(d time.Duration) float64 { return 1000 * d.Seconds() }

// addGrowthRows adds the ratios of the cost of an object at the highest and the lowest
// number of objects. They have no budget.
func (b *Bench) addGrowthRows(group string, implementations []*implementation.Implementation) {
	few, many := b.Growth[0], b.Growth[len(b.Growth)-1]
	if few == many {
		return
	}
	for _, quantity := range []string{perObject, serverCPU, ownCPU} {
		for _, c := range implementations {
			of := func(objects int) []float64 { return b.Values(group, c.Name, at(quantity, objects)) }
			name := fmt.Sprintf("%s, %d / %d: %s", quantity, many, few, c.Name)
			b.Add(report.Row{Group: group, Name: name, NoBudget: true, Values: report.Ratios(of(many), of(few))})
		}
	}
}
