// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1 "k8s.io/api/apps/v1"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/bench/controlplane"
	"github.com/modelbox-operator/modelbox-operator/bench/implementation"
	"github.com/modelbox-operator/modelbox-operator/bench/load"
	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

// The quantities of the group "eru".
const (
	restarts      = "restarts a second"
	deployWrites  = "Deployment writes per Eru"
	statusWrites  = "status writes per Eru"
	eruEvents     = "events per Eru"
	betweenSlots  = "requests between slots"
	afterTheSlot  = "slot to the last restart"
	quietInterval = 10 * time.Second
)

// erus measures many Erus with the same scheduled time: how fast the restarts are
// written, how many requests each costs, and whether there are requests before and
// after. The raw client sends the same two patches for each Eru; its rate is the upper
// bound.
func (b *Bench) erus(ctx context.Context) error {
	const group = "eru"
	ours, raw := implementation.Ours(), implementation.Raw()
	err := b.alternate(min(b.Rounds, b.LongRounds), []*implementation.Implementation{ours, raw}, func(round int, c *implementation.Implementation) error {
		b.logf("eru: round %d: %s", round+1, c.Name)
		return b.runErus(ctx, group, c)
	})
	if err != nil {
		return err
	}
	b.Add(report.Row{Group: group, Name: "restarts issued / raw PATCH rate", Limit: 0.85, AtLeast: true,
		Values: report.Ratios(b.Values(group, "ours", restarts), b.Values(group, "raw", restarts))})
	b.Add(report.Row{Group: group, Name: deployWrites, Limit: 1, Values: b.Values(group, "ours", deployWrites)})
	b.Add(report.Row{Group: group, Name: statusWrites, Limit: 2, Values: b.Values(group, "ours", statusWrites)})
	b.Add(report.Row{Group: group, Name: betweenSlots, Limit: 0, Values: b.Values(group, "ours", betweenSlots)})
	return nil
}

func (b *Bench) runErus(ctx context.Context, group string, c *implementation.Implementation) error {
	p, account, err := c.Setup(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Stop() }()
	// For both, the operator has written the status before the first scheduled time.
	slot, err := b.schedule(ctx, p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known, err := load.Watch(ctx, p, load.Erus, load.HasStatus, nil)
	if err != nil {
		return err
	}
	if err := load.Create(ctx, p, 0, b.Objects, func(i int) client.Object { return eru(i, slot) }); err != nil {
		return err
	}
	controller, err := implementation.Ours().Start(p, account)
	if err != nil {
		return err
	}
	defer controller.Stop()
	if err := load.Await(ctx, b.Objects, b.Timeout, controller.Alive, known); err != nil {
		return err
	}
	if err := controller.WaitIdle(ctx, time.Minute); err != nil {
		return err
	}
	run := &eruRun{bench: b, group: group, controlPlane: p, account: account, slot: slot}
	if c.Name == "ours" {
		return run.ours(ctx, controller)
	}
	controller.Stop()
	return run.raw(ctx, c)
}

// schedule creates Deployments with the status of a complete rollout, which a Deployment
// controller would write, and returns a scheduled time that leaves enough time for the
// next steps.
func (b *Bench) schedule(ctx context.Context, p *controlplane.ControlPlane) (time.Time, error) {
	err := load.Each(ctx, 0, b.Objects, func(ctx context.Context, i int) error {
		d := modelboxes.Deployment(modelboxes.Name(i))
		d.Namespace = modelboxes.Namespace
		if err := p.Client.Create(ctx, d); err != nil {
			return err
		}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
		return p.Client.Status().Update(ctx, d)
	})
	// The next steps take 10 ms for each Eru on a slow machine. The requests before the
	// scheduled time are counted too.
	ahead := 45*time.Second + time.Duration(b.Objects)*10*time.Millisecond
	return time.Now().Add(ahead).Truncate(time.Minute).Add(time.Minute), err
}

// eru returns an Eru that is due at a scheduled time, and then not for a year.
func eru(i int, slot time.Time) *mtsrev1.Eru {
	at := slot.UTC()
	return &mtsrev1.Eru{
		ObjectMeta: metav1.ObjectMeta{Name: modelboxes.Name(i)},
		Spec: mtsrev1.EruSpec{
			DeploymentName: modelboxes.Name(i), Enabled: true, TimeZone: "Etc/UTC",
			Schedule:                fmt.Sprintf("%d %d %d %d *", at.Minute(), at.Hour(), at.Day(), at.Month()),
			StartingDeadlineSeconds: new(int64(600)), HistoryLimit: new(int32(10)),
		},
	}
}

// eruRun is one run of an implementation.
type eruRun struct {
	bench        *Bench
	group        string
	controlPlane *controlplane.ControlPlane
	account      *controlplane.Account
	slot         time.Time
}

func (r *eruRun) record(name, quantity, unit string, value float64) {
	r.bench.Record(r.group, name, quantity, unit, value)
}

func (r *eruRun) ours(ctx context.Context, controller *implementation.Process) error {
	before, err := r.silence(ctx)
	if err != nil {
		return err
	}
	if left := time.Until(r.slot); left < 0 {
		return fmt.Errorf("the scheduled time was %s before all objects were ready: this machine is too slow or too busy for so many Erus", -left)
	}
	restarted, err := load.Watch(ctx, r.controlPlane, load.Deployments, load.Changed, nil)
	if err != nil {
		return err
	}
	mark, err := r.account.Requests(ctx)
	if err != nil {
		return err
	}
	timeout := r.bench.Timeout + time.Until(r.slot)
	if err := load.Await(ctx, r.bench.Objects, timeout, controller.Alive, restarted); err != nil {
		return err
	}
	if err := controller.WaitIdle(ctx, time.Minute); err != nil {
		return err
	}
	now, err := r.account.Requests(ctx)
	if err != nil {
		return err
	}
	r.rate("ours", restarted)
	r.record("ours", afterTheSlot, "s", restarted.Last().Sub(r.slot).Seconds())
	n, made := float64(r.bench.Objects), now.Sub(mark)
	r.record("ours", deployWrites, "", float64(made.Writes)/n)
	r.record("ours", statusWrites, "", float64(made.Status)/n)
	r.record("ours", eruEvents, "", float64(made.Events)/n)
	after, err := r.silence(ctx)
	r.record("ours", betweenSlots, "", before+after)
	r.bench.logf("  %s; %.0f requests without anything due", made, before+after)
	return err
}

// silence counts the requests while nothing is due.
func (r *eruRun) silence(ctx context.Context) (float64, error) {
	before, err := r.account.Requests(ctx)
	if err != nil {
		return 0, err
	}
	if err := controlplane.Pause(ctx, quietInterval); err != nil {
		return 0, err
	}
	after, err := r.account.Requests(ctx)
	return float64(after.Sub(before).Total()), err
}

func (r *eruRun) raw(ctx context.Context, c *implementation.Implementation) error {
	restarted, err := load.Watch(ctx, r.controlPlane, load.Deployments, load.Changed, nil)
	if err != nil {
		return err
	}
	process, err := c.Start(r.controlPlane, r.account, "--kind=eru", "--slot="+r.slot.UTC().Format(time.RFC3339))
	if err != nil {
		return err
	}
	defer process.Stop()
	if err := load.Await(ctx, r.bench.Objects, r.bench.Timeout, process.Alive, restarted); err != nil {
		return err
	}
	r.rate("raw", restarted)
	return nil
}

// rate records how many restarts a second were written, from the first to the last.
func (r *eruRun) rate(name string, restarted *load.Counter) {
	took := restarted.Last().Sub(restarted.First())
	rate := float64(r.bench.Objects-1) / took.Seconds()
	r.record(name, restarts, "", rate)
	r.bench.logf("  %d restarts in %.2f s", r.bench.Objects, took.Seconds())
}
