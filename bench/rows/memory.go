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

	"github.com/modelbox-operator/modelbox-operator/bench/controlplane"
	"github.com/modelbox-operator/modelbox-operator/bench/implementation"
	"github.com/modelbox-operator/modelbox-operator/bench/load"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
)

// The quantities of the group "memory".
const (
	idle  = "memory without objects"
	slope = "memory per object"
	fresh = "memory per object, of a new process"
)

// memory measures the resident memory (VmRSS) for each object: the difference between a
// process that has reconciled the lower number of objects and the same process after the
// upper number. It also measures a new process on the same control plane, in which all
// objects are already reconciled: its memory does not include what the burst allocated.
func (b *Bench) memory(ctx context.Context) error {
	const group = "memory"
	err := b.alternate(min(b.Rounds, b.LongRounds), b.selected("ours", "plain"), func(round int, c *implementation.Implementation) error {
		b.logf("memory: round %d: %s", round+1, c.Name)
		return b.memoryRun(ctx, group, c)
	})
	if err != nil {
		return err
	}
	if err := b.idleWebhook(ctx, group); err != nil {
		return err
	}
	ours := b.Values(group, "ours", slope)
	name := fmt.Sprintf("memory per ModelBox, %d to %d", b.MemoryFrom, b.MemoryTo)
	b.Add(report.Row{Group: group, Name: name, Unit: "kB", Limit: 6, Values: ours})
	b.Add(report.Row{Group: group, Name: name + " / plain controller", Limit: 0.25, Values: report.Ratios(ours, b.Values(group, "plain", slope))})
	b.Add(report.Row{Group: group, Name: "idle memory of the controller", Unit: "MiB", Limit: 40, Values: b.Values(group, "ours", idle)})
	b.Add(report.Row{Group: group, Name: "idle memory of the webhook", Unit: "MiB", Limit: 40, Values: b.Values(group, "webhook", idle)})
	return nil
}

func (b *Bench) memoryRun(ctx context.Context, group string, c *implementation.Implementation) error {
	p, account, err := c.Setup(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Stop() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	counters, err := watchAll(ctx, c, p, nil)
	if err != nil {
		return err
	}
	m, err := b.startReader(ctx, c, p, account)
	if err != nil {
		return err
	}
	defer func() { m.process.Stop() }()
	empty := m.idleMemory()
	m.reconcile(p, c, 0, b.MemoryFrom, counters)
	low := m.idleMemory()
	m.reconcile(p, c, b.MemoryFrom, b.MemoryTo, counters)
	high := m.idleMemory()
	restarted, err := m.restart(c, p, account)
	if err != nil {
		return err
	}
	between := float64(b.MemoryTo - b.MemoryFrom)
	b.Record(group, c.Name, idle, "MiB", empty/(1<<20))
	b.Record(group, c.Name, fmt.Sprintf("memory with %d objects", b.MemoryTo), "MiB", high/(1<<20))
	b.Record(group, c.Name, slope, "kB", (high-low)/1000/between)
	b.Record(group, c.Name, fresh, "kB", (restarted-empty)/1000/float64(b.MemoryTo))
	b.logf("  %.1f MiB idle, %.1f with %d, %.1f with %d; %.1f in a new process", empty/(1<<20), low/(1<<20), b.MemoryFrom, high/(1<<20), b.MemoryTo, restarted/(1<<20))
	return nil
}

// startReader starts an implementation whose memory can be read.
func (b *Bench) startReader(ctx context.Context, c *implementation.Implementation, p *controlplane.ControlPlane, account *controlplane.Account) (*memoryReader, error) {
	addresses, err := freeport.Addresses(1)
	if err != nil {
		return nil, err
	}
	process, err := c.Start(p, account, "--pprof-bind-address="+addresses[0])
	return &memoryReader{bench: b, ctx: ctx, process: process, pprof: addresses[0]}, err
}

// restart replaces the process with a new one and returns the memory of the new one.
func (m *memoryReader) restart(c *implementation.Implementation, p *controlplane.ControlPlane, account *controlplane.Account) (float64, error) {
	if m.err != nil {
		return 0, m.err
	}
	m.process.Stop()
	next, err := m.bench.startReader(m.ctx, c, p, account)
	if err != nil {
		return 0, err
	}
	m.process = next.process
	rss := next.idleMemory()
	return rss, next.err
}

// memoryReader creates objects for a process and reads its memory. It does nothing after
// the first error.
type memoryReader struct {
	bench   *Bench
	ctx     context.Context
	process *implementation.Process
	pprof   string
	err     error
	// profiles is how many heap profiles were written.
	profiles int
}

// idleMemory waits until the process is idle and returns its memory in bytes.
func (m *memoryReader) idleMemory() float64 {
	if m.err != nil {
		return 0
	}
	if m.err = m.process.WaitIdle(m.ctx, time.Minute); m.err != nil {
		return 0
	}
	if m.err = m.runGC(); m.err != nil {
		return 0
	}
	if m.err = controlplane.Pause(m.ctx, m.bench.MemoryRest); m.err != nil {
		return 0
	}
	var now int64
	now, _, m.err = controlplane.Memory(m.process.PID())
	return float64(now)
}

// runGC runs the garbage collector of the process twice, because the content of a
// sync.Pool survives one collection. The response is a heap profile after it.
func (m *memoryReader) runGC() error {
	var profile []byte
	for range 2 {
		request, err := http.NewRequestWithContext(m.ctx, http.MethodGet, "http://"+m.pprof+"/debug/pprof/heap?gc=1", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("requesting a garbage collection: %w", err)
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

func (m *memoryReader) reconcile(p *controlplane.ControlPlane, c *implementation.Implementation, from, to int, counters []*load.Counter) {
	if m.err == nil {
		m.err = load.Create(m.ctx, p, from, to, c.Object)
	}
	if m.err == nil {
		m.err = load.Await(m.ctx, to, m.bench.Timeout, m.process.Alive, counters...)
	}
}

// idleWebhook measures the memory of a webhook process that has received no request.
func (b *Bench) idleWebhook(ctx context.Context, group string) error {
	b.logf("memory: webhook")
	server, err := startWebhook(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	m := &memoryReader{bench: b, ctx: ctx, process: server.process, pprof: server.pprof}
	if rss := m.idleMemory(); m.err == nil {
		b.Record(group, "webhook", idle, "MiB", rss/(1<<20))
	}
	return m.err
}
