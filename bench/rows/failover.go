// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelbox-operator/modelbox-operator/bench/controlplane"
	"github.com/modelbox-operator/modelbox-operator/bench/implementation"
	"github.com/modelbox-operator/modelbox-operator/bench/load"
	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
)

// failover kills the leader of two controllers repeatedly and measures the time until
// the other one acts: from SIGKILL until the Deployment of a ModelBox that is created at
// that moment exists. Leader election has the default flags, as deployed.
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
		b.Record(group, "ours", "SIGKILL to the next write", "s", gap.Seconds())
		b.logf("failover: %d of %d: %.2f s", i+1, b.Failovers, gap.Seconds())
		gaps = append(gaps, gap.Seconds())
	}
	note := fmt.Sprintf("of %d kills; with fewer than 100 the p99 is the longest of all", b.Failovers)
	b.Add(report.Row{Group: group, Name: "SIGKILL of the leader to the next write, p50", Unit: "s", Limit: 8, Values: quantile(gaps, 0.5)})
	b.Add(report.Row{Group: group, Name: "SIGKILL of the leader to the next write, p99", Unit: "s", Limit: 10, Values: quantile(gaps, 0.99), Note: note})
	return nil
}

func quantile(values []float64, q float64) []float64 { return []float64{report.Quantile(values, q)} }

// pair is two controllers with leader election.
type pair struct {
	controlPlane *controlplane.ControlPlane
	account      *controlplane.Account
	counter      *load.Counter
	replicas     []*replica
	cancel       context.CancelFunc
}

// replica is one of them.
type replica struct {
	*implementation.Process
	metrics string
}

func startPair(ctx context.Context) (*pair, error) {
	p, account, err := implementation.Ours().Setup(ctx)
	if err != nil {
		return nil, err
	}
	watching, cancel := context.WithCancel(ctx)
	pair := &pair{controlPlane: p, account: account, cancel: cancel}
	if pair.counter, err = load.Watch(watching, p, load.Deployments, load.Exists, nil); err == nil {
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
	for _, r := range p.replicas {
		r.Stop()
	}
	_ = p.controlPlane.Stop()
}

// complete starts replicas until there are two, and waits until they are idle.
func (p *pair) complete(ctx context.Context) error {
	for len(p.replicas) < 2 {
		addresses, err := freeport.Addresses(2)
		if err != nil {
			return err
		}
		process, err := implementation.RunAs(implementation.Controller, filepath.Join(p.controlPlane.Dir, "controller.log"), p.account,
			"--leader-election-namespace="+modelboxes.Namespace, "--metrics-bind-address="+addresses[0], "--health-probe-bind-address="+addresses[1])
		if err != nil {
			return err
		}
		r := &replica{Process: process, metrics: "http://" + addresses[0] + "/metrics"}
		p.replicas = append(p.replicas, r)
		err = controlplane.Poll(ctx, 100*time.Millisecond, time.Minute, "waiting for a controller to be ready", func() (bool, error) {
			return answers("http://" + addresses[1] + "/readyz"), process.Alive()
		})
		if err != nil {
			return err
		}
		if err := process.WaitIdle(ctx, 20*time.Second); err != nil {
			return err
		}
	}
	return nil
}

// fail kills the leader, measures the time to the next write, and starts a replacement.
func (p *pair) fail(ctx context.Context, i int) (time.Duration, error) {
	leader, err := p.leader(ctx)
	if err != nil {
		return 0, err
	}
	killed := time.Now()
	p.replicas[leader].Kill()
	p.replicas = append(p.replicas[:leader], p.replicas[leader+1:]...)
	if err := load.Create(ctx, p.controlPlane, i, i+1, implementation.Ours().Object); err != nil {
		return 0, err
	}
	if err := load.Await(ctx, i+1, time.Minute, p.replicas[0].Alive, p.counter); err != nil {
		return 0, err
	}
	gap := p.counter.At(modelboxes.Name(i)).Sub(killed)
	return gap, p.complete(ctx)
}

// leader returns the index of the replica that is the leader.
func (p *pair) leader(ctx context.Context) (int, error) {
	leader := -1
	err := controlplane.Poll(ctx, 100*time.Millisecond, time.Minute, "waiting for a leader", func() (bool, error) {
		for i, r := range p.replicas {
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
