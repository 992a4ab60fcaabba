// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelbox-operator/modelbox-operator/bench/contestant"
	"github.com/modelbox-operator/modelbox-operator/bench/load"
	"github.com/modelbox-operator/modelbox-operator/bench/plane"
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

// created measures what new objects cost: the time until the last has its
// Deployment, Service and status, the requests, and the CPU time of all processes.
//
// The objects are there before the contestant starts, and its clock starts with
// the first write that an independent watch sees of it. By then its connections
// stand and its caches are filled; and what the making of the objects costs the API
// server is not in anybody's sum, where it would make all look alike. It is also
// the one way that asks nothing of a contestant: a lease that is let go is a gate
// that half of them don't have, and the watches of a process that is stopped for a
// while may not survive it.
//
// CPU time is counted until the contestant rests, so that reconciles which find
// nothing to do are in it. Requests are counted over the whole turn, because to read
// the count costs too much to do it inside.
func (b *Bench) created(ctx context.Context) error {
	const group = "created"
	failed := map[string]bool{}
	err := b.turns(b.Rounds, b.Contestants, func(round int, c *contestant.Contestant) error {
		if failed[c.Name] {
			return nil
		}
		b.say("created: round %d of %d: %s", round+1, b.Rounds, c.Name)
		sample, err := b.turn(ctx, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			// One who cannot finish does not keep the others from it.
			failed[c.Name] = true
			b.Fail(group+": "+c.Name, err)
			b.say("  failed: %v", err)
			return nil
		}
		b.say("  %s", sample.note(b.Report, group, c.Name, b.Objects))
		return nil
	})
	if err != nil {
		return err
	}
	b.judgeCreated(group)
	return nil
}

func (b *Bench) judgeCreated(group string) {
	of := func(name, quantity string) []float64 { return b.Of(group, name, quantity) }
	to := func(name, quantity string) []float64 { return report.Ratios(of("ours", quantity), of(name, quantity)) }
	b.Add(report.Row{Group: group, Name: "time until all exist / raw client", Limit: 1.15, Values: to("raw", seconds)})
	b.Add(report.Row{Group: group, Name: "writes per new ModelBox", Limit: 3.05, Values: of("ours", writes)})
	b.Add(report.Row{Group: group, Name: "uncached reads per new ModelBox", Limit: 0, Values: of("ours", reads)})
	b.Add(report.Row{Group: group, Name: "API server + etcd CPU / raw client", Limit: 1.10, Values: to("raw", serverCPU)})
	b.Add(report.Row{Group: group, Name: "controller CPU / raw client", Limit: 2, Values: to("raw", ownCPU)})
	for _, kro := range b.takingPart("kro-tuned", "kro") {
		b.Add(report.Row{Group: group, Name: "requests / " + kro.Name, Limit: 1.0 / 6, Values: to(kro.Name, total)})
		b.Add(report.Row{Group: group, Name: "controller CPU / " + kro.Name, Limit: 1.0 / 5, Values: to(kro.Name, ownCPU)})
	}
}

// sample is what one turn was measured to be.
type sample struct {
	took        time.Duration
	server, own time.Duration
	requests    plane.Requests
	memory      int64
}

func (s sample) note(r *report.Report, group, name string, objects int) string {
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
		r.Note(group, name, quantity.name, quantity.unit, quantity.value)
	}
	return fmt.Sprintf("%.2f s; CPU %s of the API server and etcd, %s own; %s", s.took.Seconds(), s.server, s.own, s.requests)
}

// turn is one contestant's turn on a fresh plane.
func (b *Bench) turn(ctx context.Context, c *contestant.Contestant) (sample, error) {
	p, account, err := c.Ready(ctx)
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = p.Stop() }()
	if err := load.Create(ctx, p, 0, b.Objects, c.Object); err != nil {
		return sample{}, err
	}
	if err := p.Rest(ctx); err != nil {
		return sample{}, err
	}
	return b.race(ctx, c, p, account)
}

// race starts the contestant and times it.
func (b *Bench) race(ctx context.Context, c *contestant.Contestant, p *plane.Plane, account *plane.Account) (sample, error) {
	before, err := account.Requests(ctx)
	if err != nil {
		return sample{}, err
	}
	start := &start{p: p, ready: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tallies, err := watchAll(ctx, c, p, start.first)
	if err != nil {
		return sample{}, err
	}
	process, err := c.Start(p, account)
	if err != nil {
		return sample{}, err
	}
	defer process.Stop()
	start.now(process)
	if err := load.Await(ctx, b.Objects, b.Patience, process.Alive, tallies...); err != nil {
		return sample{}, err
	}
	// Whoever limits himself goes on for minutes after his last object is there.
	if err := process.Settle(ctx, b.Patience); err != nil {
		return sample{}, err
	}
	s, err := finish(ctx, start, process, account, before, tallies)
	if err != nil {
		return s, err
	}
	return s, c.Check(ctx, p, b.Objects-1)
}

func finish(ctx context.Context, start *start, process *contestant.Process, account *plane.Account, before plane.Requests, tallies []*load.Tally) (sample, error) {
	server, own, err := start.since()
	if err != nil {
		return sample{}, err
	}
	s := sample{server: server, own: own}
	for _, t := range tallies {
		s.took = max(s.took, t.Last().Sub(start.at))
	}
	if s.memory, _, err = plane.Memory(process.PID()); err != nil {
		return sample{}, err
	}
	after, err := account.Requests(ctx)
	s.requests = after.Sub(before)
	return s, err
}

// watchAll watches what has to come of a contestant's objects.
func watchAll(ctx context.Context, c *contestant.Contestant, p *plane.Plane, first func(time.Time)) ([]*load.Tally, error) {
	var tallies []*load.Tally
	add := func(t *load.Tally, err error) error {
		tallies = append(tallies, t)
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
	return tallies, add(load.Watch(ctx, p, c.Resource, load.HasStatus, first))
}

// start is the moment at which a contestant makes its first write, and what the
// processes had used by then.
type start struct {
	p       *plane.Plane
	ready   chan struct{}
	process *contestant.Process

	once        sync.Once
	at          time.Time
	server, own time.Duration
	err         error
}

// now tells which process it is about.
func (s *start) now(process *contestant.Process) {
	s.process = process
	close(s.ready)
}

// first is called at the first write of each sort, the first of which counts.
func (s *start) first(at time.Time) {
	s.once.Do(func() {
		<-s.ready
		s.at = at
		if s.server, s.err = s.p.Server.CPU(); s.err == nil {
			s.own, s.err = s.process.Processes().CPU()
		}
	})
}

// since is what the API server with etcd, and the contestant have used since.
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
