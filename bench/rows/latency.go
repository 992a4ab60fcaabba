// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelbox-operator/modelbox-operator/bench/boxes"
	"github.com/modelbox-operator/modelbox-operator/bench/contestant"
	"github.com/modelbox-operator/modelbox-operator/bench/load"
	"github.com/modelbox-operator/modelbox-operator/bench/plane"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

const toVisible = "acknowledged to visible"

// latency measures how long an object waits at a rate that leaves room: half the
// rate at which the raw client works off a burst. Objects come evenly, whether
// or not earlier ones are done. The time runs from the API server's answer to the
// create until the watch of Deployments shows the Deployment.
func (b *Bench) latency(ctx context.Context) error {
	const group = "latency"
	rate, err := b.rawRate(ctx)
	if err != nil {
		return err
	}
	var p99 []float64
	ours := contestant.Ours()
	for round := range b.Rounds {
		b.say("latency: round %d of %d: %.0f objects a second", round+1, b.Rounds, rate/2)
		waits, err := b.waits(ctx, ours, rate/2)
		if err != nil {
			return err
		}
		p99 = append(p99, report.Quantile(waits.visible, 0.99))
		b.Note(group, ours.Name, toVisible+", p50", "ms", report.Quantile(waits.visible, 0.5))
		b.Note(group, ours.Name, toVisible+", p99", "ms", p99[round])
		b.Note(group, "API server", "answer to a create, p50", "ms", report.Quantile(waits.answers, 0.5))
		b.Note(group, "API server", "answer to a create, p99", "ms", report.Quantile(waits.answers, 0.99))
		b.say("  p50 %.0f ms, p99 %.0f ms; the API server's answers to whoever makes the objects: p50 %.0f ms, p99 %.0f ms",
			report.Quantile(waits.visible, 0.5), p99[round], report.Quantile(waits.answers, 0.5), report.Quantile(waits.answers, 0.99))
	}
	b.Note(group, "loader", "objects a second", "", rate/2)
	b.Add(report.Row{Group: group, Name: "acknowledged to Deployment visible, p99", Unit: "ms", Limit: 100, Values: p99,
		Note: fmt.Sprintf("at %.0f objects a second, half of the raw client's rate; %d objects a round", rate/2, b.Objects)})
	return nil
}

// rawRate is how many objects a second the raw client works off: the median of the
// rounds in which it took part, or of a turn that is made for this.
func (b *Bench) rawRate(ctx context.Context) (float64, error) {
	times := b.Of("created", "raw", seconds)
	if len(times) == 0 {
		b.say("latency: the raw client's rate")
		sample, err := b.turn(ctx, contestant.Raw())
		if err != nil {
			return 0, err
		}
		times = []float64{sample.took.Seconds()}
	}
	return float64(b.Objects) / report.Summarize(times).Median, nil
}

// waits makes objects at a rate and returns how long each waited.
func (b *Bench) waits(ctx context.Context, c *contestant.Contestant, rate float64) (waits, error) {
	p, account, err := c.Ready(ctx)
	if err != nil {
		return waits{}, err
	}
	defer func() { _ = p.Stop() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tally, err := load.Watch(ctx, p, load.Deployments, load.Exists, nil)
	if err != nil {
		return waits{}, err
	}
	process, err := c.Start(p, account)
	if err != nil {
		return waits{}, err
	}
	defer process.Stop()
	// Objects that nobody times, until all is warm.
	const warm = 20
	if err := load.Create(ctx, p, b.Objects, b.Objects+warm, c.Object); err != nil {
		return waits{}, err
	}
	if err := load.Await(ctx, warm, b.Patience, process.Alive, tally); err != nil {
		return waits{}, err
	}
	return b.paced(ctx, p, c, process, rate, warm, tally)
}

func (b *Bench) paced(ctx context.Context, p *plane.Plane, c *contestant.Contestant, process *contestant.Process, rate float64, before int, tally *load.Tally) (waits, error) {
	var mu sync.Mutex
	acknowledged := map[string]time.Time{}
	var w waits
	err := load.Paced(ctx, b.Objects, rate, func(ctx context.Context, i int) error {
		asked := time.Now()
		if err := load.Create(ctx, p, i, i+1, c.Object); err != nil {
			return err
		}
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		acknowledged[boxes.Name(i)] = now
		w.answers = append(w.answers, milliseconds(now.Sub(asked)))
		return nil
	})
	if err != nil {
		return w, err
	}
	if err := load.Await(ctx, before+b.Objects, b.Patience, process.Alive, tally); err != nil {
		return w, err
	}
	for name, at := range acknowledged {
		// The controller may be faster than the answer to whoever made the object.
		w.visible = append(w.visible, max(0, milliseconds(tally.At(name).Sub(at))))
	}
	return w, nil
}

// waits are how long each object waited, in milliseconds.
type waits struct {
	// answers is for the API server to answer to its create, which has nothing to do
	// with the controller: what its tail has, the other's cannot be without.
	answers []float64
	// visible is from then on, for its Deployment.
	visible []float64
}
