// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelbox-operator/modelbox-operator/bench/controlplane"
	"github.com/modelbox-operator/modelbox-operator/bench/implementation"
	"github.com/modelbox-operator/modelbox-operator/bench/load"
	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

const toVisible = "acknowledged to visible"

// latency measures the time to a new object's Deployment at a moderate load: half the
// rate at which the raw client handles a burst. Objects are created at a constant rate,
// without waiting for earlier ones (an open loop). The time is from the API server's
// response to the create request until the watch of Deployments receives the Deployment.
func (b *Bench) latency(ctx context.Context) error {
	const group = "latency"
	rate, err := b.rawRate(ctx)
	if err != nil {
		return err
	}
	var p99 []float64
	ours := implementation.Ours()
	for round := range b.Rounds {
		b.logf("latency: round %d of %d: %.0f objects a second", round+1, b.Rounds, rate/2)
		measured, err := b.latencies(ctx, ours, rate/2)
		if err != nil {
			return err
		}
		p99 = append(p99, report.Quantile(measured.visible, 0.99))
		b.Record(group, ours.Name, toVisible+", p50", "ms", report.Quantile(measured.visible, 0.5))
		b.Record(group, ours.Name, toVisible+", p99", "ms", p99[round])
		b.Record(group, "API server", "answer to a create, p50", "ms", report.Quantile(measured.answers, 0.5))
		b.Record(group, "API server", "answer to a create, p99", "ms", report.Quantile(measured.answers, 0.99))
		b.logf("  p50 %.0f ms, p99 %.0f ms; the API server's responses to create requests: p50 %.0f ms, p99 %.0f ms",
			report.Quantile(measured.visible, 0.5), p99[round], report.Quantile(measured.answers, 0.5), report.Quantile(measured.answers, 0.99))
	}
	b.Record(group, "loader", "objects a second", "", rate/2)
	b.Add(report.Row{Group: group, Name: "acknowledged to Deployment visible, p99", Unit: "ms", Limit: 100, Values: p99,
		Note: fmt.Sprintf("at %.0f objects a second, half of the raw client's rate; %d objects a round", rate/2, b.Objects)})
	return nil
}

// rawRate returns how many objects a second the raw client handles: the median of the
// rounds of "created" if it was measured there, and otherwise of one additional run.
func (b *Bench) rawRate(ctx context.Context) (float64, error) {
	times := b.Values("created", "raw", seconds)
	if len(times) == 0 {
		b.logf("latency: the raw client's rate")
		sample, err := b.run(ctx, implementation.Raw())
		if err != nil {
			return 0, err
		}
		times = []float64{sample.took.Seconds()}
	}
	return float64(b.Objects) / report.Summarize(times).Median, nil
}

// latencies creates objects at a rate and returns the latencies of each.
func (b *Bench) latencies(ctx context.Context, c *implementation.Implementation, rate float64) (latencies, error) {
	p, account, err := c.Setup(ctx)
	if err != nil {
		return latencies{}, err
	}
	defer func() { _ = p.Stop() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	counter, err := load.Watch(ctx, p, load.Deployments, load.Exists, nil)
	if err != nil {
		return latencies{}, err
	}
	process, err := c.Start(p, account)
	if err != nil {
		return latencies{}, err
	}
	defer process.Stop()
	// The first objects, which fill caches and open connections, are not measured.
	const warm = 20
	if err := load.Create(ctx, p, b.Objects, b.Objects+warm, c.Object); err != nil {
		return latencies{}, err
	}
	if err := load.Await(ctx, warm, b.Timeout, process.Alive, counter); err != nil {
		return latencies{}, err
	}
	return b.paced(ctx, p, c, process, rate, warm, counter)
}

func (b *Bench) paced(
	ctx context.Context, p *controlplane.ControlPlane, c *implementation.Implementation, process *implementation.Process,
	rate float64, before int, counter *load.Counter,
) (latencies, error) {
	var mu sync.Mutex
	acknowledged := map[string]time.Time{}
	var w latencies
	err := load.Paced(ctx, b.Objects, rate, func(ctx context.Context, i int) error {
		sent := time.Now()
		if err := load.Create(ctx, p, i, i+1, c.Object); err != nil {
			return err
		}
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		acknowledged[modelboxes.Name(i)] = now
		w.answers = append(w.answers, milliseconds(now.Sub(sent)))
		return nil
	})
	if err != nil {
		return w, err
	}
	if err := load.Await(ctx, before+b.Objects, b.Timeout, process.Alive, counter); err != nil {
		return w, err
	}
	for name, at := range acknowledged {
		// The Deployment may be visible before the response to the create request.
		w.visible = append(w.visible, max(0, milliseconds(counter.At(name).Sub(at))))
	}
	return w, nil
}

// latencies holds the latencies of each object in milliseconds.
type latencies struct {
	// answers is the time to the API server's response to the create request. The
	// controller has no influence on it, but its slowest values also limit visible.
	answers []float64
	// visible is the time from that response until the Deployment is visible.
	visible []float64
}
