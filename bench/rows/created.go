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
	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

// The quantities of the group "created".
const (
	seconds       = "time for all"
	serverCPU     = "API server + etcd CPU per object"
	ownCPU        = "own CPU per object"
	writes        = "writes per object"
	reads         = "uncached reads per object"
	events        = "events per object"
	total         = "requests per object"
	residentAfter = "memory after"
)

// created measures the cost of new objects: the time until the last object has its
// Deployment, Service and status, the requests, and the CPU time of all processes.
//
// The objects exist before the implementation starts, and the measurement starts with
// its first write that an independent watch sees. At that time its connections are open
// and its caches are filled. The API server's cost of creating the objects is not
// included, because it is the same for all and would hide their differences. This method
// also works with every implementation: only half of them could wait for a lease, and
// the watches of a process that is paused with a signal may break.
//
// CPU time is counted until the implementation is idle, so no-op reconciles are
// included. Requests are counted over the whole run, because reading the counts costs
// too much CPU time during the measurement.
func (b *Bench) created(ctx context.Context) error {
	const group = "created"
	failed := map[string]bool{}
	err := b.alternate(b.Rounds, b.Implementations, func(round int, c *implementation.Implementation) error {
		if failed[c.Name] {
			return nil
		}
		b.logf("created: round %d of %d: %s", round+1, b.Rounds, c.Name)
		sample, err := b.run(ctx, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			// The other implementations are measured in spite of the failure.
			failed[c.Name] = true
			b.Fail(group+": "+c.Name, err)
			b.logf("  failed: %v", err)
			return nil
		}
		b.logf("  %s", sample.record(b.Report, group, c.Name, b.Objects))
		return nil
	})
	if err != nil {
		return err
	}
	b.addCreatedRows(group)
	if len(b.selected("ours")) == 0 {
		return nil
	}
	return b.createdFull(ctx, group)
}

// createdFull counts the requests for objects that have all fields of a model server. Requests
// do not differ between rounds, so one is enough.
func (b *Bench) createdFull(ctx context.Context, group string) error {
	full := implementation.OursFull()
	b.logf("created: once: %s", full.Name)
	sample, err := b.run(ctx, full)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		b.Fail(group+": "+full.Name, err)
		return nil
	}
	b.logf("  %s", sample.record(b.Report, group, full.Name, b.Objects))
	b.Add(report.Row{Group: group, Name: "writes per new ModelBox with all fields", Limit: 3.05, Values: b.Values(group, full.Name, writes)})
	b.Add(report.Row{Group: group, Name: "uncached reads per new ModelBox with all fields", Limit: 0, Values: b.Values(group, full.Name, reads)})
	return nil
}

func (b *Bench) addCreatedRows(group string) {
	of := func(name, quantity string) []float64 { return b.Values(group, name, quantity) }
	to := func(name, quantity string) []float64 { return report.Ratios(of("ours", quantity), of(name, quantity)) }
	b.Add(report.Row{Group: group, Name: "time until all exist / raw client", Limit: 1.15, Values: to("raw", seconds)})
	b.Add(report.Row{Group: group, Name: "writes per new ModelBox", Limit: 3.05, Values: of("ours", writes)})
	b.Add(report.Row{Group: group, Name: "uncached reads per new ModelBox", Limit: 0, Values: of("ours", reads)})
	b.Add(report.Row{Group: group, Name: "API server + etcd CPU / raw client", Limit: 1.10, Values: to("raw", serverCPU)})
	b.Add(report.Row{Group: group, Name: "controller CPU / raw client", Limit: 2, Values: to("raw", ownCPU)})
	for _, kro := range b.selected("kro-tuned", "kro") {
		b.Add(report.Row{Group: group, Name: "requests / " + kro.Name, Limit: 1.0 / 6, Values: to(kro.Name, total)})
		b.Add(report.Row{Group: group, Name: "controller CPU / " + kro.Name, Limit: 1.0 / 5, Values: to(kro.Name, ownCPU)})
	}
}

// sample holds the measured values of one run.
type sample struct {
	took        time.Duration
	server, own time.Duration
	requests    controlplane.Requests
	memory      int64
}

func (s sample) record(r *report.Report, group, name string, objects int) string {
	n := float64(objects)
	for _, quantity := range []struct {
		name, unit string
		value      float64
	}{
		{seconds, "s", s.took.Seconds()},
		{serverCPU, "ms", float64(s.server.Milliseconds()) / n},
		{ownCPU, "ms", float64(s.own.Milliseconds()) / n},
		{writes, "", float64(s.requests.AllWrites()) / n},
		{reads, "", float64(s.requests.Reads()) / n},
		{events, "", float64(s.requests.Events) / n},
		{total, "", float64(s.requests.Total()) / n},
		{residentAfter, "MiB", float64(s.memory) / (1 << 20)},
	} {
		r.Record(group, name, quantity.name, quantity.unit, quantity.value)
	}
	return fmt.Sprintf("%.2f s; CPU %s of the API server and etcd, %s own; %s", s.took.Seconds(), s.server, s.own, s.requests)
}

// run measures an implementation once, on a new control plane.
func (b *Bench) run(ctx context.Context, c *implementation.Implementation) (sample, error) {
	p, account, err := c.Setup(ctx)
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = p.Stop() }()
	if err := load.Create(ctx, p, 0, b.Objects, c.Object); err != nil {
		return sample{}, err
	}
	if err := p.WaitIdle(ctx); err != nil {
		return sample{}, err
	}
	return b.runTimed(ctx, c, p, account)
}

// runTimed starts the implementation and measures it.
func (b *Bench) runTimed(ctx context.Context, c *implementation.Implementation, p *controlplane.ControlPlane, account *controlplane.Account) (sample, error) {
	before, err := account.Requests(ctx)
	if err != nil {
		return sample{}, err
	}
	start := &start{p: p, ready: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	counters, err := watchAll(ctx, c, p, start.first)
	if err != nil {
		return sample{}, err
	}
	process, err := c.Start(p, account)
	if err != nil {
		return sample{}, err
	}
	defer process.Stop()
	start.setProcess(process)
	if err := load.Await(ctx, b.Objects, b.Timeout, process.Alive, counters...); err != nil {
		return sample{}, err
	}
	// An implementation with rate limits may continue for minutes after the last object.
	if err := process.WaitIdle(ctx, b.Timeout); err != nil {
		return sample{}, err
	}
	s, err := finish(ctx, start, process, account, before, counters)
	if err != nil {
		return s, err
	}
	return s, c.Check(ctx, p, b.Objects-1)
}

func finish(ctx context.Context, start *start, process *implementation.Process, account *controlplane.Account, before controlplane.Requests, counters []*load.Counter) (sample, error) {
	server, own, err := start.since()
	if err != nil {
		return sample{}, err
	}
	s := sample{server: server, own: own}
	for _, t := range counters {
		s.took = max(s.took, t.Last().Sub(start.at))
	}
	if s.memory, _, err = controlplane.Memory(process.PID()); err != nil {
		return sample{}, err
	}
	after, err := account.Requests(ctx)
	s.requests = after.Sub(before)
	return s, err
}

// watchAll counts the Deployments, Services and statuses that an implementation writes.
func watchAll(ctx context.Context, c *implementation.Implementation, p *controlplane.ControlPlane, first func(time.Time)) ([]*load.Counter, error) {
	var counters []*load.Counter
	add := func(t *load.Counter, err error) error {
		counters = append(counters, t)
		return err
	}
	if err := add(load.Watch(ctx, p, load.Deployments, load.Exists, first)); err != nil {
		return nil, err
	}
	if !c.NoService {
		if err := add(load.Watch(ctx, p, load.Services, load.Exists, nil)); err != nil {
			return nil, err
		}
	}
	return counters, add(load.Watch(ctx, p, c.Resource, load.HasStatus, first))
}

// start holds the time of an implementation's first write, and the CPU time of the
// processes at that time.
type start struct {
	p       *controlplane.ControlPlane
	ready   chan struct{}
	process *implementation.Process

	once        sync.Once
	at          time.Time
	server, own time.Duration
	err         error
}

// setProcess sets the process that is measured.
func (s *start) setProcess(process *implementation.Process) {
	s.process = process
	close(s.ready)
}

// first is called at the first write of each resource. The first call counts.
func (s *start) first(at time.Time) {
	s.once.Do(func() {
		<-s.ready
		s.at = at
		if s.server, s.err = s.p.Server.CPU(); s.err == nil {
			s.own, s.err = s.process.Processes().CPU()
		}
	})
}

// since returns the CPU time that the API server with etcd, and the implementation, have
// used since the start.
func (s *start) since() (server, own time.Duration, err error) {
	if s.err != nil {
		return 0, 0, s.err
	}
	if server, err = s.p.Server.CPU(); err != nil {
		return 0, 0, err
	}
	own, err = s.process.Processes().CPU()
	return server - s.server, own - s.own, err
}
