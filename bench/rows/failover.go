// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelbox-operator/modelbox-operator/bench/boxes"
	"github.com/modelbox-operator/modelbox-operator/bench/contestant"
	"github.com/modelbox-operator/modelbox-operator/bench/load"
	"github.com/modelbox-operator/modelbox-operator/bench/plane"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

// failover kills the leader of two controllers, again and again, and measures how
// long it takes until the other one does something: from SIGKILL until the
// Deployment of a ModelBox that is made in that moment is there. The lease is
// held as deployed, with the flags' defaults.
func (b *Bench) failover(ctx context.Context) error {
	const group = "failover"
	pair, err := startPair(ctx)
	if err != nil {
		return err
	}
	defer pair.stop()
	var gaps []float64
	for i := range b.Failovers {
		gap, err := pair.fail(ctx, i)
		if err != nil {
			return err
		}
		b.Note(group, "ours", "SIGKILL to the next write", "s", gap.Seconds())
		b.say("failover: %d of %d: %.2f s", i+1, b.Failovers, gap.Seconds())
		gaps = append(gaps, gap.Seconds())
	}
	note := fmt.Sprintf("of %d kills; with fewer than 100 the p99 is the longest of all", b.Failovers)
	b.Add(report.Row{Group: group, Name: "SIGKILL of the leader to the next write, p50", Unit: "s", Limit: 8, Values: quantile(gaps, 0.5)})
	b.Add(report.Row{Group: group, Name: "SIGKILL of the leader to the next write, p99", Unit: "s", Limit: 10, Values: quantile(gaps, 0.99), Note: note})
	return nil
}

func quantile(values []float64, q float64) []float64 { return []float64{report.Quantile(values, q)} }

// pair is two controllers, one of which leads.
type pair struct {
	plane   *plane.Plane
	account *plane.Account
	tally   *load.Tally
	both    []*replica
	cancel  context.CancelFunc
}

// replica is one of them.
type replica struct {
	*contestant.Process
	metrics string
}

func startPair(ctx context.Context) (*pair, error) {
	p, account, err := contestant.Ours().Ready(ctx)
	if err != nil {
		return nil, err
	}
	watching, cancel := context.WithCancel(ctx)
	pair := &pair{plane: p, account: account, cancel: cancel}
	if pair.tally, err = load.Watch(watching, p, load.Deployments, load.Exists, nil); err == nil {
		err = pair.complete(ctx)
	}
	if err != nil {
		pair.stop()
		return nil, err
	}
	return pair, nil
}

func (p *pair) stop() {
	p.cancel()
	for _, r := range p.both {
		r.Stop()
	}
	_ = p.plane.Stop()
}

// complete starts replicas until there are two, one of which leads, and lets the
// other one warm up.
func (p *pair) complete(ctx context.Context) error {
	for len(p.both) < 2 {
		addresses, err := contestant.Addresses(2)
		if err != nil {
			return err
		}
		process, err := contestant.Run(contestant.Controller, filepath.Join(p.plane.Dir, "controller.log"), p.account,
			"--leader-election-namespace="+boxes.Namespace, "--metrics-bind-address="+addresses[0], "--health-probe-bind-address="+addresses[1])
		if err != nil {
			return err
		}
		r := &replica{Process: process, metrics: "http://" + addresses[0] + "/metrics"}
		p.both = append(p.both, r)
		err = plane.Poll(ctx, 100*time.Millisecond, time.Minute, "waiting for a controller to be ready", func() (bool, error) {
			return answers("http://" + addresses[1] + "/readyz"), process.Alive()
		})
		if err != nil {
			return err
		}
		if err := process.Settle(ctx, 20*time.Second); err != nil {
			return err
		}
	}
	return nil
}

// fail kills the leader, measures the gap and replaces it.
func (p *pair) fail(ctx context.Context, i int) (time.Duration, error) {
	leader, err := p.leader(ctx)
	if err != nil {
		return 0, err
	}
	killed := time.Now()
	p.both[leader].Kill()
	p.both = append(p.both[:leader], p.both[leader+1:]...)
	if err := load.Create(ctx, p.plane, i, i+1, contestant.Ours().Object); err != nil {
		return 0, err
	}
	if err := load.Await(ctx, i+1, time.Minute, p.both[0].Alive, p.tally); err != nil {
		return 0, err
	}
	gap := p.tally.At(boxes.Name(i)).Sub(killed)
	return gap, p.complete(ctx)
}

// leader is which of them leads.
func (p *pair) leader(ctx context.Context) (int, error) {
	leader := -1
	err := plane.Poll(ctx, 100*time.Millisecond, time.Minute, "waiting for a leader", func() (bool, error) {
		for i, r := range p.both {
			series, err := scrape(ctx, r.metrics, "leader_election_master_status")
			if err != nil {
				return false, err
			}
			for name, value := range series {
				if strings.Contains(name, "modelbox") && value == 1 {
					leader = i
				}
			}
		}
		return leader >= 0, nil
	})
	return leader, err
}
