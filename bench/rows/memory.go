// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/modelbox-operator/modelbox-operator/bench/contestant"
	"github.com/modelbox-operator/modelbox-operator/bench/load"
	"github.com/modelbox-operator/modelbox-operator/bench/plane"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

// The quantities of the group "memory".
const (
	idle  = "memory without objects"
	slope = "memory per object"
	fresh = "memory per object, of a new process"
)

// memory measures the memory (VmRSS) that objects cost: between a process that has
// worked off the lower count of objects and the same process when it has worked
// off the upper one. Of the same plane it also takes a new process that finds
// all objects done, which is the memory without what the burst left behind.
func (b *Bench) memory(ctx context.Context) error {
	const group = "memory"
	err := b.turns(min(b.Rounds, b.LongRounds), b.takingPart("ours", "plain"), func(round int, c *contestant.Contestant) error {
		b.say("memory: round %d: %s", round+1, c.Name)
		return b.memoryTurn(ctx, group, c)
	})
	if err != nil {
		return err
	}
	if err := b.idleWebhook(ctx, group); err != nil {
		return err
	}
	ours := b.Of(group, "ours", slope)
	name := fmt.Sprintf("memory per ModelBox, %d to %d", b.MemoryFrom, b.MemoryTo)
	b.Add(report.Row{Group: group, Name: name, Unit: "kB", Limit: 6, Values: ours})
	b.Add(report.Row{Group: group, Name: name + " / plain controller", Limit: 0.25, Values: report.Ratios(ours, b.Of(group, "plain", slope))})
	b.Add(report.Row{Group: group, Name: "idle memory of the controller", Unit: "MiB", Limit: 40, Values: b.Of(group, "ours", idle)})
	b.Add(report.Row{Group: group, Name: "idle memory of the webhook", Unit: "MiB", Limit: 40, Values: b.Of(group, "webhook", idle)})
	return nil
}

func (b *Bench) memoryTurn(ctx context.Context, group string, c *contestant.Contestant) error {
	p, account, err := c.Ready(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Stop() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tallies, err := watchAll(ctx, c, p, nil)
	if err != nil {
		return err
	}
	m, err := b.startReader(ctx, c, p, account)
	if err != nil {
		return err
	}
	defer func() { m.process.Stop() }()
	empty := m.resting()
	m.work(p, c, 0, b.MemoryFrom, tallies)
	low := m.resting()
	m.work(p, c, b.MemoryFrom, b.MemoryTo, tallies)
	high := m.resting()
	anew, err := m.anew(c, p, account)
	if err != nil {
		return err
	}
	between := float64(b.MemoryTo - b.MemoryFrom)
	b.Note(group, c.Name, idle, "MiB", empty/(1<<20))
	b.Note(group, c.Name, fmt.Sprintf("memory with %d objects", b.MemoryTo), "MiB", high/(1<<20))
	b.Note(group, c.Name, slope, "kB", (high-low)/1000/between)
	b.Note(group, c.Name, fresh, "kB", (anew-empty)/1000/float64(b.MemoryTo))
	b.say("  %.1f MiB idle, %.1f with %d, %.1f with %d; %.1f in a new process", empty/(1<<20), low/(1<<20), b.MemoryFrom, high/(1<<20), b.MemoryTo, anew/(1<<20))
	return nil
}

// startReader starts a contestant whose memory can be read.
func (b *Bench) startReader(ctx context.Context, c *contestant.Contestant, p *plane.Plane, account *plane.Account) (*memoryReader, error) {
	addresses, err := contestant.Addresses(1)
	if err != nil {
		return nil, err
	}
	process, err := c.Start(p, account, "--pprof-bind-address="+addresses[0])
	return &memoryReader{bench: b, ctx: ctx, process: process, pprof: addresses[0]}, err
}

// anew is the memory of a new process that takes the place of the one before.
func (m *memoryReader) anew(c *contestant.Contestant, p *plane.Plane, account *plane.Account) (float64, error) {
	if m.err != nil {
		return 0, m.err
	}
	m.process.Stop()
	next, err := m.bench.startReader(m.ctx, c, p, account)
	if err != nil {
		return 0, err
	}
	m.process = next.process
	rss := next.resting()
	return rss, next.err
}

// memoryReader gives objects to a process and reads its memory, until something
// fails.
type memoryReader struct {
	bench   *Bench
	ctx     context.Context
	process *contestant.Process
	pprof   string
	err     error
	// profiles is how many were written.
	profiles int
}

// resting is the memory of the process when it has come to rest, in bytes.
func (m *memoryReader) resting() float64 {
	if m.err != nil {
		return 0
	}
	if m.err = m.process.Settle(m.ctx, time.Minute); m.err != nil {
		return 0
	}
	if m.err = m.collect(); m.err != nil {
		return 0
	}
	if m.err = plane.Pause(m.ctx, m.bench.MemoryRest); m.err != nil {
		return 0
	}
	var now int64
	now, _, m.err = plane.Memory(m.process.PID())
	return float64(now)
}

// collect has the process collect its garbage, twice, because what is in a sync.Pool
// outlives one collection. What it answers is a profile of what is left.
func (m *memoryReader) collect() error {
	var profile []byte
	for range 2 {
		request, err := http.NewRequestWithContext(m.ctx, http.MethodGet, "http://"+m.pprof+"/debug/pprof/heap?gc=1", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("asking for a garbage collection: %w", err)
		}
		profile, err = io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return err
		}
	}
	if m.bench.Profiles == "" {
		return nil
	}
	m.profiles++
	name := fmt.Sprintf("%s-%s-%d.pb.gz", filepath.Base(m.process.Path()), time.Now().Format("150405"), m.profiles)
	return os.WriteFile(filepath.Join(m.bench.Profiles, name), profile, 0o600)
}

func (m *memoryReader) work(p *plane.Plane, c *contestant.Contestant, from, to int, tallies []*load.Tally) {
	if m.err == nil {
		m.err = load.Create(m.ctx, p, from, to, c.Object)
	}
	if m.err == nil {
		m.err = load.Await(m.ctx, to, m.bench.Patience, m.process.Alive, tallies...)
	}
}

// idleWebhook reads the memory of a webhook process that nobody has asked yet.
func (b *Bench) idleWebhook(ctx context.Context, group string) error {
	b.say("memory: webhook")
	server, err := startWebhook(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	m := &memoryReader{bench: b, ctx: ctx, process: server.process, pprof: server.pprof}
	if rss := m.resting(); m.err == nil {
		b.Note(group, "webhook", idle, "MiB", rss/(1<<20))
	}
	return m.err
}
