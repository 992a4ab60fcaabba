// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
)

const (
	noisyNamespace = "noisy"
	within         = 20 * time.Minute
)

// create creates the objects from one number up to another, which are as they are after admission.
func (p *controlPlane) create(ctx context.Context, namespace string, from, to int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := from; i < to; i++ {
		group.Go(func() error {
			box := modelboxes.ModelBox(i)
			box.Namespace = namespace
			return p.Create(ctx, box)
		})
	}
	return group.Wait()
}

// seen is what independent watches have seen: when each object first was as a controller makes it.
type seen struct {
	mu          sync.Mutex
	at          map[string]time.Time
	first, last time.Time
	changed     chan struct{}
}

// watch begins to watch a kind. An object is done when the function says so.
func (s *seen) watch(ctx context.Context, p *controlPlane, list client.ObjectList, done func(client.Object) bool) error {
	w, err := p.Watch(ctx, list)
	if err != nil {
		return err
	}
	go func() {
		for err == nil { // The API server ends watches. A new one begins with all objects.
			for event := range w.ResultChan() {
				if obj, ok := event.Object.(client.Object); ok && event.Type != watch.Deleted && done(obj) {
					s.add(fmt.Sprintf("%T %s/%s", obj, obj.GetNamespace(), obj.GetName()))
				}
			}
			w, err = p.Watch(ctx, list)
		}
	}()
	return nil
}

func (s *seen) add(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.at[key]; known {
		return
	}
	s.last = time.Now()
	s.at[key] = s.last
	if s.first.IsZero() {
		s.first = s.last
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// await waits until so many objects are done.
func (s *seen) await(ctx context.Context, count int, on *process) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		s.mu.Lock()
		n := len(s.at)
		s.mu.Unlock()
		if n >= count {
			return nil
		}
		select {
		case <-s.changed:
		case <-on.ended:
			return fmt.Errorf("%s has ended:\n%s", on.name, on.log.String())
		case <-ctx.Done():
			return fmt.Errorf("%s has made %d of %d: %w", on.name, n, count, context.Cause(ctx))
		}
	}
}

func hasStatus(obj client.Object) bool {
	box, ok := obj.(*modelv1.ModelBox)
	return ok && len(box.Status.Conditions) > 0
}

// watchAll watches what a controller makes of a ModelBox: three objects for each.
func watchAll(ctx context.Context, p *controlPlane) (*seen, error) {
	s := &seen{at: map[string]time.Time{}, changed: make(chan struct{}, 1)}
	ours := func(obj client.Object) bool { return len(obj.GetOwnerReferences()) > 0 }
	for list, done := range map[client.ObjectList]func(client.Object) bool{
		&appsv1.DeploymentList{}: ours, &corev1.ServiceList{}: ours, &modelv1.ModelBoxList{}: hasStatus,
	} {
		if err := s.watch(ctx, p, list, done); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// created measures the cost of new objects: the time from the first to the last write that a watch
// sees, CPU until all is idle, and requests. The objects exist before the program starts, so that
// neither their creation nor the start of the program is in the time.
func (b *bench) created(ctx context.Context) error {
	order := []string{"ours", "raw", "plain"}
	if len(b.values["raw: time for all, s"])%2 == 1 { // Forwards and backwards.
		slices.Reverse(order)
	}
	for _, name := range order {
		if err := with(ctx, name, b.objects, b.recordCreated); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for row, quantity := range map[string]string{
		"time / raw": "time for all, s", "own CPU / raw": "own CPU per object, ms", "API server and etcd CPU / raw": "API server and etcd CPU per object, ms",
	} {
		b.ratio("ours: "+row, "ours: "+quantity, "raw: "+quantity)
		b.ratio("plain: "+row, "plain: "+quantity, "raw: "+quantity)
	}
	return nil
}

// running is a program on a control plane of its own.
type running struct {
	*controlPlane
	program *process
	watched *seen
	// before is the CPU time of the control plane when the program began.
	before time.Duration
}

// with runs a program on a control plane of its own, which has so many objects before.
func with(ctx context.Context, program string, objects int, measure func(context.Context, *running) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := start(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	r := &running{controlPlane: p}
	err = p.create(ctx, modelboxes.Namespace, 0, objects)
	if err == nil {
		r.watched, err = watchAll(ctx, p)
	}
	if err == nil {
		err = idle(ctx, p.server)
	}
	if err == nil {
		r.before, err = cpu(p.server...)
	}
	if err == nil {
		r.program, err = p.run(program)
	}
	if err != nil {
		return err
	}
	defer r.program.stop()
	if err := r.settled(ctx, objects); err != nil {
		return err
	}
	return measure(ctx, r)
}

// settled waits until the program has made everything of so many objects, and is idle.
func (r *running) settled(ctx context.Context, objects int) error {
	if err := r.watched.await(ctx, 3*objects, r.program); err != nil {
		return err
	}
	return idle(ctx, []int{r.program.Process.Pid})
}

func (b *bench) recordCreated(ctx context.Context, r *running) error {
	own, err := cpu(r.program.Process.Pid)
	if err != nil {
		return err
	}
	after, err := cpu(r.server...)
	if err != nil {
		return err
	}
	made, err := r.program.requests(ctx)
	if err != nil {
		return err
	}
	name := r.program.name
	n := float64(b.objects)
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / n }
	b.record(name+": time for all, s", r.watched.last.Sub(r.watched.first).Seconds())
	b.record(name+": own CPU per object, ms", each(own))
	b.record(name+": API server and etcd CPU per object, ms", each(after-r.before))
	if name != "raw" {
		b.record(name+": writes per object", made.writes/n)
		b.record(name+": reads, all, lists and watches at the start included", made.reads)
		b.record(name+": conflicts (409), percent of the writes", 100*made.conflicts/max(made.writes, 1))
	}
	return nil
}

// memory measures the resident memory of the controllers at rest: without objects, and with them.
func (b *bench) memory(ctx context.Context) error {
	counts := []int{0, b.objects}
	if b.many > b.objects {
		counts = append(counts, b.many)
	}
	for _, name := range []string{"ours", "plain"} {
		err := with(ctx, name, 0, func(ctx context.Context, r *running) error {
			before := 0
			for _, count := range counts {
				err := r.create(ctx, modelboxes.Namespace, before, count)
				if err == nil {
					err = r.settled(ctx, count)
				}
				if err == nil {
					err = b.recordMemory(ctx, r.program, count)
				}
				if err != nil {
					return err
				}
				before = count
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// recordMemory reads the memory after the garbage collection that Go runs within two minutes, and after
// its pages have been returned to the system: the lowest value of that time.
func (b *bench) recordMemory(ctx context.Context, program *process, count int) error {
	lowest, err := resident(program.Process.Pid)
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for end := time.Now().Add(150 * time.Second); err == nil && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		var now float64
		now, err = resident(program.Process.Pid)
		lowest = min(lowest, now)
	}
	b.record(fmt.Sprintf("%s: memory with %d objects, MiB", program.name, count), lowest)
	return err
}

// latency measures the time from the answer to the creation of a single object until a watch sees
// its Deployment, while objects are created at a constant rate: 20 a second.
func (b *bench) latency(ctx context.Context) error {
	return alone(ctx, func(ctx context.Context, r *running) error {
		times, err := r.paced(ctx, 0, b.objects, 20)
		b.record("ours: acknowledged to Deployment visible, p50, ms", quantile(times, 0.5))
		b.record("ours: acknowledged to Deployment visible, p99, ms", quantile(times, 0.99))
		return err
	})
}

// alone runs the operator's controller on a control plane of its own.
func alone(ctx context.Context, measure func(context.Context, *running) error) error {
	return with(ctx, "ours", 0, func(ctx context.Context, r *running) error {
		// The first objects, which fill caches and open connections, are not measured.
		const warm = 20
		err := r.create(ctx, modelboxes.Namespace, 90000, 90000+warm)
		if err == nil {
			err = r.settled(ctx, warm)
		}
		if err != nil {
			return err
		}
		return measure(ctx, r)
	})
}

// paced creates single objects at a rate, whether earlier ones are done or not, and returns in
// milliseconds how long each Deployment took.
func (r *running) paced(ctx context.Context, from, to, rate int) ([]float64, error) {
	var group errgroup.Group
	answered := make([]time.Time, to-from)
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	for i := from; i < to; i++ {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-ticker.C:
		}
		group.Go(func() error {
			err := r.Create(ctx, modelboxes.ModelBox(i))
			answered[i-from] = time.Now()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []float64
	for i, at := range answered {
		visible, err := r.watched.deployment(ctx, modelboxes.Name(from+i))
		if err != nil {
			return nil, err
		}
		out = append(out, max(0, float64(visible.Sub(at).Microseconds())/1000))
	}
	return out, nil
}

// deployment waits for an object's Deployment and returns when it was first seen.
func (s *seen) deployment(ctx context.Context, name string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		s.mu.Lock()
		at, ok := s.at[fmt.Sprintf("%T %s/%s", &appsv1.Deployment{}, modelboxes.Namespace, name)]
		s.mu.Unlock()
		if ok {
			return at, nil
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return at, fmt.Errorf("there is no Deployment %s: %w", name, context.Cause(ctx))
		}
	}
}

// noisy measures the latency beside another namespace, whose objects four clients change as fast as
// the API server answers. The control is the same clients that change labels of the same objects,
// which causes no reconcile: what is left is the controller's queue.
func (b *bench) noisy(ctx context.Context) error {
	return alone(ctx, func(ctx context.Context, r *running) error {
		if err := r.create(ctx, noisyNamespace, 0, b.objects); err != nil {
			return err
		}
		const singles = 100
		for i, change := range []struct{ row, patch string }{
			{"beside changed labels", `{"metadata":{"labels":{"round":"%d"}}}`},
			{"beside changed specs", `{"spec":{"terminationGracePeriodSeconds":%d}}`},
		} {
			times, err := b.beside(ctx, r.controlPlane, change.patch, func(ctx context.Context) ([]float64, error) {
				return r.paced(ctx, singles*i, singles*(i+1), 5)
			})
			if err != nil {
				return err
			}
			b.record("noisy: p99 "+change.row+", ms", quantile(times, 0.99))
		}
		b.ratio("noisy: changed specs / changed labels", "noisy: p99 beside changed specs, ms", "noisy: p99 beside changed labels, ms")
		return nil
	})
}

// beside measures while four clients patch the objects of the noisy namespace.
func (b *bench) beside(ctx context.Context, p *controlPlane, patch string, measure func(context.Context) ([]float64, error)) ([]float64, error) {
	noise, end := context.WithCancel(ctx)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := worker; noise.Err() == nil; i += 4 {
				box := modelboxes.ModelBox(i % b.objects)
				box.Namespace = noisyNamespace
				// A client of another tenant continues after an error.
				_ = p.Patch(noise, box, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, patch, i+1)))
			}
		})
	}
	defer group.Wait()
	defer end()
	return measure(ctx)
}
