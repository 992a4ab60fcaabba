// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/bench/controlplane"
	"github.com/modelbox-operator/modelbox-operator/bench/implementation"
	"github.com/modelbox-operator/modelbox-operator/bench/load"
	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
)

// The situations in which the time to a Deployment is measured.
const (
	quiet = "nothing else changes"
	busy  = "other clients make the same requests"
	noisy = "another namespace changes all the time"
)

const (
	noisyNamespace = "noisy"
	// noisyRate is how many single objects are created in a second, one after the other.
	noisyRate = 5
	// noisyClients is how many clients of the noisy namespace change objects, each as fast as
	// the API server responds.
	noisyClients = 4
	// reconcilers is the default of --workers, the number of requests that the controller
	// makes at the same time.
	reconcilers = 8
)

// noisy measures the time to a single new object's Deployment while the objects of another
// namespace change all the time, and compares it with two others.
//
// Alone, the object has the whole API server for itself, which on a small machine is most of
// the difference: the noisy clients and the controller, which reconciles what they change,
// keep it as busy as it can be. So the budget is for the comparison with the same requests,
// made by as many clients, none of which is a reconcile: what is left is the controller's
// queue.
func (b *Bench) noisy(ctx context.Context) error {
	const group = "noisy"
	for round := range min(b.Rounds, b.LongRounds) {
		b.logf("noisy: round %d: %d objects in the other namespace", round+1, b.Noisy)
		if err := b.noisyRun(ctx, group); err != nil {
			return err
		}
	}
	p99 := func(situation string) []float64 { return b.Values(group, situation, toVisible+", p99") }
	b.Add(report.Row{Group: group, Name: "p99 beside a noisy namespace / beside the same requests", Limit: 2, Values: report.Ratios(p99(noisy), p99(busy))})
	b.Add(report.Row{Group: group, Name: "p99 beside a noisy namespace / alone", Limit: 2, Values: report.Ratios(p99(noisy), p99(quiet))})
	return nil
}

func (b *Bench) noisyRun(ctx context.Context, group string) error {
	ours := implementation.Ours()
	p, account, err := ours.Setup(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Stop() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run := &noisyMeasurement{bench: b, group: group, controlPlane: p}
	if run.deployments, err = load.Watch(ctx, p, load.Deployments, load.Exists, nil); err != nil {
		return err
	}
	if err := run.start(ctx, ours, account); err != nil {
		return err
	}
	defer run.process.Stop()
	return run.measure(ctx)
}

// noisyMeasurement is one run on one control plane.
type noisyMeasurement struct {
	bench        *Bench
	group        string
	controlPlane *controlplane.ControlPlane
	process      *implementation.Process
	metrics      string
	deployments  *load.Counter
	created      int
}

// start creates the objects of the noisy namespace, and starts the controller, which
// reconciles them.
func (m *noisyMeasurement) start(ctx context.Context, c *implementation.Implementation, account *controlplane.Account) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: noisyNamespace}}
	if err := m.controlPlane.Client.Create(ctx, namespace); err != nil {
		return err
	}
	addresses, err := freeport.Addresses(1)
	if err != nil {
		return err
	}
	m.metrics = addresses[0]
	if m.process, err = c.Start(m.controlPlane, account, "--metrics-bind-address="+m.metrics); err != nil {
		return err
	}
	err = load.Each(ctx, 0, m.bench.Noisy, func(ctx context.Context, i int) error {
		return m.controlPlane.Client.Create(ctx, withoutPorts(noisyNamespace, i))
	})
	if err != nil {
		return err
	}
	return m.idle(ctx)
}

// idle waits until the controller has reconciled everything.
func (m *noisyMeasurement) idle(ctx context.Context) error {
	err := controlplane.Poll(ctx, time.Second, m.bench.Timeout, "waiting for an empty queue", func() (bool, error) {
		return m.depth(ctx) == 0, m.process.Alive()
	})
	if err != nil {
		return err
	}
	return m.process.WaitIdle(ctx, time.Minute)
}

// withoutPorts returns an object without ports: with thousands of Services, the time of the
// API server to create one would hide everything else.
func withoutPorts(namespace string, i int) *modelv1.ModelBox {
	box := modelboxes.ModelBox(i)
	box.Namespace, box.Spec.Ports, box.Spec.LivenessProbe, box.Spec.ReadinessProbe = namespace, nil, nil, nil
	return box
}

func (m *noisyMeasurement) measure(ctx context.Context) error {
	if err := m.sample(ctx, quiet); err != nil {
		return err
	}
	if err := m.beside(ctx, busy, repeat(noisyClients, m.label), repeat(reconcilers, m.write)); err != nil {
		return err
	}
	if err := m.idle(ctx); err != nil {
		return err
	}
	return m.beside(ctx, noisy, repeat(noisyClients, m.change))
}

// change changes the spec of an object of the noisy namespace, which is to be reconciled.
func (m *noisyMeasurement) change(ctx context.Context, i int) error {
	return m.patch(ctx, i, fmt.Sprintf(`{"spec":{"image":"registry.example.com/team/server:%d"}}`, i))
}

// label changes a label, which needs no reconcile.
func (m *noisyMeasurement) label(ctx context.Context, i int) error {
	return m.patch(ctx, i, fmt.Sprintf(`{"metadata":{"labels":{"changed":"%d"}}}`, i))
}

func (m *noisyMeasurement) patch(ctx context.Context, i int, body string) error {
	return m.controlPlane.Client.Patch(ctx, m.box(i), client.RawPatch(types.MergePatchType, []byte(body)))
}

func (m *noisyMeasurement) box(i int) *modelv1.ModelBox {
	return &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: noisyNamespace, Name: modelboxes.Name(i % m.bench.Noisy)}}
}

// write makes the two requests with which the controller reconciles a changed object, for a
// Deployment that is not its child.
func (m *noisyMeasurement) write(ctx context.Context, i int) error {
	const copies = 200
	writes, err := modelboxes.WritesOf(modelboxes.ModelBox(i % copies))
	if err != nil {
		return err
	}
	d := writes.Deployment
	d.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	d.Namespace, d.Name, d.OwnerReferences, d.Labels = noisyNamespace, "copy-"+d.Name, nil, nil
	d.Spec.Template.Spec.Containers[0].Image = fmt.Sprint("registry.example.com/team/server:", i)
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	into := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
	err = m.controlPlane.Client.Patch(ctx, into, client.RawPatch(types.ApplyPatchType, body), client.FieldOwner("bench"), client.ForceOwnership)
	if err != nil {
		return err
	}
	status := fmt.Appendf(nil, `{"status":{"replicas":%d}}`, i)
	return m.controlPlane.Client.Status().Patch(ctx, m.box(i), client.RawPatch(types.MergePatchType, status))
}

// noise is one client that repeats a request as fast as it is answered.
type noise func(ctx context.Context, i int) error

func repeat(clients int, request noise) []noise { return slices.Repeat([]noise{request}, clients) }

// beside samples while clients make noise.
func (m *noisyMeasurement) beside(ctx context.Context, situation string, clients ...[]noise) error {
	var requests atomic.Int64
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	for _, request := range slices.Concat(clients...) {
		group.Go(func() error {
			for ctx.Err() == nil {
				if err := request(ctx, int(requests.Add(1))); ctx.Err() == nil && client.IgnoreAlreadyExists(err) != nil && !apierrors.IsConflict(err) {
					return fmt.Errorf("making noise: %w", err)
				}
			}
			return nil
		})
	}
	err := controlplane.Pause(ctx, 10*time.Second) // Until the queue is as long as it becomes.
	before, start := requests.Load(), time.Now()
	if err == nil {
		err = m.sample(ctx, situation)
	}
	m.bench.Record(m.group, situation, "changes a second", "", float64(requests.Load()-before)/time.Since(start).Seconds())
	stop()
	return errors.Join(group.Wait(), err)
}

// sample creates single objects and records the time to their Deployments.
func (m *noisyMeasurement) sample(ctx context.Context, situation string) error {
	const samples = 200
	from, depth := m.created, 0.0
	m.created += samples
	var mu sync.Mutex
	acknowledged := map[string]time.Time{}
	err := load.Paced(ctx, samples, noisyRate, func(ctx context.Context, i int) error {
		box := withoutPorts(controlplane.Namespace, from+i)
		if err := m.controlPlane.Client.Create(ctx, box); err != nil {
			return err
		}
		now, queued := time.Now(), m.depth(ctx)
		mu.Lock()
		defer mu.Unlock()
		acknowledged[box.Name], depth = now, max(depth, queued)
		return nil
	})
	if err != nil {
		return err
	}
	if err := load.Await(ctx, m.created, m.bench.Timeout, m.process.Alive, m.deployments); err != nil {
		return err
	}
	var visible []float64
	for name, at := range acknowledged {
		// The Deployment may be visible before the response to the create request.
		visible = append(visible, max(0, milliseconds(m.deployments.At(name).Sub(at))))
	}
	m.record(situation, visible, depth)
	return nil
}

func (m *noisyMeasurement) record(situation string, visible []float64, depth float64) {
	p50, p99 := report.Quantile(visible, 0.5), report.Quantile(visible, 0.99)
	m.bench.Record(m.group, situation, toVisible+", p50", "ms", p50)
	m.bench.Record(m.group, situation, toVisible+", p99", "ms", p99)
	m.bench.Record(m.group, situation, "longest queue", "", depth)
	m.bench.logf("  %s: p50 %.0f ms, p99 %.0f ms, at most %.0f objects in the queue", situation, p50, p99, depth)
}

// depth returns the number of ModelBoxes in the queue of the controller, 0 if it cannot be
// read.
func (m *noisyMeasurement) depth(ctx context.Context) float64 {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.metrics+"/metrics", nil)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer func() { _ = response.Body.Close() }()
	var sum float64
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), "} ")
		if strings.HasPrefix(series, `workqueue_depth{`) && strings.Contains(series, `controller="modelbox"`) {
			queued, _ := strconv.ParseFloat(value, 64)
			sum += queued
		}
	}
	return sum
}
