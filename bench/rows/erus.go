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
	"github.com/modelbox-operator/modelbox-operator/bench/boxes"
	"github.com/modelbox-operator/modelbox-operator/bench/contestant"
	"github.com/modelbox-operator/modelbox-operator/bench/load"
	"github.com/modelbox-operator/modelbox-operator/bench/plane"
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

// erus measures many Erus that are due in the same second: how fast the restarts
// are written, what each costs, and whether there is silence before and after. The
// raw client makes the same two patches for each Eru; its rate is the limit.
func (b *Bench) erus(ctx context.Context) error {
	const group = "eru"
	ours, raw := contestant.Ours(), contestant.Raw()
	err := b.turns(min(b.Rounds, b.LongRounds), []*contestant.Contestant{ours, raw}, func(round int, c *contestant.Contestant) error {
		b.say("eru: round %d: %s", round+1, c.Name)
		return b.eruTurn(ctx, group, c)
	})
	if err != nil {
		return err
	}
	b.Add(report.Row{Group: group, Name: "restarts issued / raw PATCH rate", Limit: 0.85, AtLeast: true,
		Values: report.Ratios(b.Of(group, "ours", restarts), b.Of(group, "raw", restarts))})
	b.Add(report.Row{Group: group, Name: deployWrites, Limit: 1, Values: b.Of(group, "ours", deployWrites)})
	b.Add(report.Row{Group: group, Name: statusWrites, Limit: 2, Values: b.Of(group, "ours", statusWrites)})
	b.Add(report.Row{Group: group, Name: betweenSlots, Limit: 0, Values: b.Of(group, "ours", betweenSlots)})
	return nil
}

func (b *Bench) eruTurn(ctx context.Context, group string, c *contestant.Contestant) error {
	p, account, err := c.Ready(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Stop() }()
	// Both find status as it is before the first slot: written, by the operator.
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
	controller, err := contestant.Ours().Start(p, account)
	if err != nil {
		return err
	}
	defer controller.Stop()
	if err := load.Await(ctx, b.Objects, b.Patience, controller.Alive, known); err != nil {
		return err
	}
	if err := controller.Settle(ctx, time.Minute); err != nil {
		return err
	}
	turn := &eruRace{bench: b, group: group, plane: p, account: account, slot: slot}
	if c.Name == "ours" {
		return turn.ours(ctx, controller)
	}
	controller.Stop()
	return turn.raw(ctx, c)
}

// schedule makes Deployments that are rolled out, as nobody but a Deployment
// controller would say, and finds a slot that leaves time for the rest.
func (b *Bench) schedule(ctx context.Context, p *plane.Plane) (time.Time, error) {
	err := load.Each(ctx, 0, b.Objects, func(ctx context.Context, i int) error {
		d := boxes.Deployment(boxes.Name(i))
		d.Namespace = boxes.Namespace
		if err := p.Client.Create(ctx, d); err != nil {
			return err
		}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
		return p.Client.Status().Update(ctx, d)
	})
	// What is still to be done takes 10 ms an Eru on a slow machine, and the quiet
	// before the slot is measured too.
	ahead := 45*time.Second + time.Duration(b.Objects)*10*time.Millisecond
	return time.Now().Add(ahead).Truncate(time.Minute).Add(time.Minute), err
}

// eru is due once, at a slot, and then not for a year.
func eru(i int, slot time.Time) *mtsrev1.Eru {
	at := slot.UTC()
	return &mtsrev1.Eru{
		ObjectMeta: metav1.ObjectMeta{Name: boxes.Name(i)},
		Spec: mtsrev1.EruSpec{
			DeploymentName: boxes.Name(i), Enabled: true, TimeZone: "Etc/UTC",
			Schedule:                fmt.Sprintf("%d %d %d %d *", at.Minute(), at.Hour(), at.Day(), at.Month()),
			StartingDeadlineSeconds: new(int64(600)), HistoryLimit: new(int32(10)),
		},
	}
}

// eruRace is one turn.
type eruRace struct {
	bench   *Bench
	group   string
	plane   *plane.Plane
	account *plane.Account
	slot    time.Time
}

func (r *eruRace) note(name, quantity, unit string, value float64) {
	r.bench.Note(r.group, name, quantity, unit, value)
}

func (r *eruRace) ours(ctx context.Context, controller *contestant.Process) error {
	before, err := r.silence(ctx)
	if err != nil {
		return err
	}
	if left := time.Until(r.slot); left < 0 {
		return fmt.Errorf("the slot was over %s before all was ready: this machine is too slow or too busy for so many Erus", -left)
	}
	restarted, err := load.Watch(ctx, r.plane, load.Deployments, load.Changed, nil)
	if err != nil {
		return err
	}
	mark, err := r.account.Requests(ctx)
	if err != nil {
		return err
	}
	patience := r.bench.Patience + time.Until(r.slot)
	if err := load.Await(ctx, r.bench.Objects, patience, controller.Alive, restarted); err != nil {
		return err
	}
	if err := controller.Settle(ctx, time.Minute); err != nil {
		return err
	}
	now, err := r.account.Requests(ctx)
	if err != nil {
		return err
	}
	r.rate("ours", restarted)
	r.note("ours", afterTheSlot, "s", restarted.Last().Sub(r.slot).Seconds())
	n, made := float64(r.bench.Objects), now.Sub(mark)
	r.note("ours", deployWrites, "", float64(made.Writes)/n)
	r.note("ours", statusWrites, "", float64(made.Status)/n)
	r.note("ours", eruEvents, "", float64(made.Events)/n)
	after, err := r.silence(ctx)
	r.note("ours", betweenSlots, "", before+after)
	r.bench.say("  %s; %.0f requests in silence", made, before+after)
	return err
}

// silence counts the requests while there is nothing to do.
func (r *eruRace) silence(ctx context.Context) (float64, error) {
	before, err := r.account.Requests(ctx)
	if err != nil {
		return 0, err
	}
	if err := plane.Pause(ctx, quietInterval); err != nil {
		return 0, err
	}
	after, err := r.account.Requests(ctx)
	return float64(after.Sub(before).Total()), err
}

func (r *eruRace) raw(ctx context.Context, c *contestant.Contestant) error {
	restarted, err := load.Watch(ctx, r.plane, load.Deployments, load.Changed, nil)
	if err != nil {
		return err
	}
	process, err := c.Start(r.plane, r.account, "--kind=eru", "--slot="+r.slot.UTC().Format(time.RFC3339))
	if err != nil {
		return err
	}
	defer process.Stop()
	if err := load.Await(ctx, r.bench.Objects, r.bench.Patience, process.Alive, restarted); err != nil {
		return err
	}
	r.rate("raw", restarted)
	return nil
}

// rate is how many restarts a second were written, from the first to the last.
func (r *eruRace) rate(name string, restarted *load.Tally) {
	took := restarted.Last().Sub(restarted.First())
	rate := float64(r.bench.Objects-1) / took.Seconds()
	r.note(name, restarts, "", rate)
	r.bench.say("  %d restarts in %.2f s", r.bench.Objects, took.Seconds())
}
