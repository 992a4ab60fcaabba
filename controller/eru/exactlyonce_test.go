// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
)

// trouble is what goes wrong in a run; each is a set of things that happen at
// random.
type trouble struct {
	name string
	// leaders is how many controllers act, without a lease between them.
	leaders int
	// crashes end a reconcile before or after any write, fail a write, or lose the
	// answer to one that happened; and the controller is away for a while.
	crashes bool
	// stale lets caches lag, also behind the controller's own writes.
	stale bool
	// jumps puts the clock forward and back.
	jumps bool
	// people pause, scale, roll out, restart, delete and create the Deployment.
	people bool
	// edits change the Eru's spec.
	edits bool
}

var troubles = []trouble{
	{name: "none", leaders: 1},
	{name: "people", leaders: 1, people: true},
	{name: "crashes", leaders: 1, crashes: true},
	{name: "crashes and people", leaders: 1, crashes: true, people: true},
	{name: "a jumping clock", leaders: 1, crashes: true, jumps: true},
	{name: "stale caches", leaders: 1, crashes: true, stale: true, people: true},
	{name: "two leaders", leaders: 2, crashes: true, stale: true},
	{name: "all", leaders: 2, crashes: true, stale: true, jumps: true, people: true, edits: true},
}

// slotsPerRun makes thousands of slots over all troubles. The seeds are other ones
// in each run of the fuzzer.
const slotsPerRun = 300

// FuzzExactlyOnce drives reconciles through hundreds of slots and checks what must
// hold at each write, and in the end of each slot.
func FuzzExactlyOnce(f *testing.F) {
	for kind := range troubles {
		f.Add(uint8(kind), uint64(kind))
	}
	f.Fuzz(func(t *testing.T, kind uint8, seed uint64) {
		tr := troubles[int(kind)%len(troubles)]
		defer func() {
			if t.Failed() {
				t.Logf("trouble: %s, seed %d", tr.name, seed)
			}
		}()
		r := newRun(t, tr, seed)
		for len(r.entries) < slotsPerRun && !t.Failed() {
			r.step()
		}
		r.check()
	})
}

// run is one run: a server, controllers and a clock, and what has been seen.
type run struct {
	t       *testing.T
	trouble trouble
	rnd     *rand.Rand
	server  *server
	clock   *clocktesting.FakePassiveClock
	// newest is the furthest that the clock has been.
	newest time.Time
	views  []*view
	// wake is when each controller's timer goes off, by a clock that does not jump.
	wake  []time.Duration
	since time.Duration
	// inside is true while one controller's write waits for another's reconcile.
	inside bool

	plans     []plan
	restarted []restarted
	entries   map[int64]mtsrev1.EruHistory
}

// restarted is one restart that the server has seen.
type restarted struct {
	deployment types.UID
	slot       time.Time
}

var runSchedules = []string{"* * * * *", "*/7 * * * *", "30 * * * *", "15,45 1-4 * * *", "30 2 * * *"}

func newRun(t *testing.T, tr trouble, seed uint64) *run {
	r := &run{t: t, trouble: tr, rnd: rand.New(rand.NewPCG(seed, 0)), entries: map[int64]mtsrev1.EruHistory{}}
	zones := []string{"Etc/UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}
	obj := asked(func(o *mtsrev1.Eru) {
		o.ResourceVersion = "0"
		o.Spec.Schedule, o.Spec.TimeZone = pick(r, runSchedules), pick(r, zones)
		o.Spec.JitterSeconds = pick(r, []int32{0, 20, 3600})
		o.Spec.StartingDeadlineSeconds = new(pick(r, []int64{0, 30, 600, 7200}))
		o.Spec.HistoryLimit = new(int32(5)) // No decision makes more entries than that.
	})
	r.plans = []plan{planFor(t, obj)}
	r.server = &server{eru: obj, deployment: web(), restarts: r.onRestart, statuses: r.onStatus}
	r.clock, r.newest = clocktesting.NewFakePassiveClock(at("00:00:00")), at("00:00:00")
	for i := range tr.leaders {
		v := &view{server: r.server}
		v.write = func(do func() error) error { return r.write(i, do) }
		v.syncEru()
		v.syncDeployment()
		r.views, r.wake = append(r.views, v), append(r.wake, 0)
	}
	return r
}

func pick[T any](r *run, from []T) T { return from[r.rnd.IntN(len(from))] }

func (r *run) chance(percent int) bool { return r.rnd.IntN(100) < percent }

// step lets something happen, and then lets time pass until a controller wakes.
func (r *run) step() {
	if r.trouble.people && r.chance(40) {
		r.person()
	}
	if r.trouble.edits && r.chance(3) {
		r.someEdit()
	}
	if r.trouble.jumps && r.chance(5) {
		r.jump(time.Duration(r.rnd.Int64N(int64(8*time.Hour))) - 4*time.Hour)
	}
	next := slices.Min(r.wake)
	switch {
	case r.trouble.crashes && r.chance(2):
		r.pass(next-r.since, r.downtime())
	case r.chance(10): // An event comes first.
		r.pass(time.Duration(r.rnd.Int64N(int64(max(next-r.since, 1)))))
	default:
		r.pass(next - r.since)
	}
	for i := range r.views {
		if r.wake[i] <= r.since || r.chance(20) {
			r.reconcile(i)
		}
	}
	if r.chance(70) {
		r.server.change(func(d *appsv1.Deployment) { d.Generation--; rolledOut(d) })
	}
}

func (r *run) downtime() time.Duration {
	return pick(r, []time.Duration{5 * time.Second, 2 * time.Minute, time.Hour, 26 * time.Hour, 400 * 24 * time.Hour})
}

// pass lets time pass.
func (r *run) pass(spans ...time.Duration) {
	for _, span := range spans {
		span = max(span, 0)
		r.since += span
		r.jump(span)
	}
}

// jump sets the clock.
func (r *run) jump(by time.Duration) {
	r.clock.SetTime(r.clock.Now().Add(by))
	if r.clock.Now().After(r.newest) {
		r.newest = r.clock.Now()
	}
}

var errCut = errors.New("the connection was cut")

type crash struct{}

// write is one write of a controller: another controller may come in between, and
// it may fail, or be the last thing that the controller does.
func (r *run) write(controller int, do func() error) error {
	if r.trouble.leaders > 1 && !r.inside && r.chance(30) {
		r.inside = true
		r.reconcile((controller + 1) % r.trouble.leaders)
		r.inside = false
	}
	fate := 100
	if r.trouble.crashes {
		fate = r.rnd.IntN(100)
	}
	switch {
	case fate < 5:
		return errCut
	case fate < 10:
		panic(crash{})
	}
	err := do()
	switch {
	case fate < 15:
		return errCut
	case fate < 20:
		panic(crash{})
	}
	return err
}

// reconcile runs one controller, whose cache may lag, and sets its timer.
func (r *run) reconcile(i int) {
	v := r.views[i]
	if !r.trouble.stale || r.chance(60) {
		v.syncEru()
	}
	if !r.trouble.stale || r.chance(60) {
		v.syncDeployment()
	}
	result, err := r.survive(v)
	switch {
	case err != nil:
		r.wake[i] = r.since + time.Duration(r.rnd.IntN(5000))*time.Millisecond
	case result.RequeueAfter == maxRequeueAfter && r.chance(90):
		r.wake[i] = r.since + r.naps()*maxRequeueAfter
	case result.RequeueAfter > 0:
		r.wake[i] = r.since + result.RequeueAfter
	default:
		r.wake[i] = r.since + maxRequeueAfter // An event.
	}
}

// naps is how often a controller naps until the next slot: nothing comes of any nap
// but the last, and there are hundreds in a day.
func (r *run) naps() time.Duration {
	next := r.server.eru.Status.NextScheduleTime
	if next == nil {
		return 1
	}
	return max(next.Sub(r.clock.Now())/maxRequeueAfter, 1)
}

func (r *run) survive(v *view) (result reconcile.Result, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			if _, ok := cause.(crash); !ok {
				panic(cause)
			}
			err = errCut
		}
	}()
	return reconciler(v, r.clock).Reconcile(r.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "web"}})
}

// reconciler is what SetupWithManager makes.
func reconciler(c client.Client, clk *clocktesting.FakePassiveClock) reconcile.Reconciler {
	return (&Reconciler{Client: c, Recorder: &events.FakeRecorder{}, Clock: clk}).recorded()
}

// person does something to the Deployment.
func (r *run) person() {
	now := r.clock.Now()
	switch r.rnd.IntN(9) {
	case 0:
		r.server.change(paused)
	case 1, 2, 3:
		r.server.change(func(d *appsv1.Deployment) { d.Spec.Paused, d.Spec.Replicas = false, new(int32(3)); rolledOut(d) })
	case 4:
		r.server.change(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(r.rnd.IntN(3))) })
	case 5, 6:
		r.server.change(rolling)
	case 7:
		r.server.change(func(d *appsv1.Deployment) { kubectlRolloutRestart(d, now) })
	case 8:
		r.server.replace(nil)
		if r.chance(70) {
			r.server.replace(web(func(d *appsv1.Deployment) { d.CreationTimestamp = metav1.NewTime(now) }))
		}
	}
	if r.server.deployment == nil && r.chance(50) {
		r.server.replace(web(func(d *appsv1.Deployment) { d.CreationTimestamp = metav1.NewTime(now) }))
	}
}

// kubectlRolloutRestart is a person's restart. The fraction of a second tells it
// from ours. It does not move back when the clock does: who writes an older value,
// or removes it, takes away what says that a restart was done.
func kubectlRolloutRestart(d *appsv1.Deployment, now time.Time) {
	if last := restartedAt(d); last.After(now) {
		now = last
	}
	restartedBy(now.Add(time.Millisecond).Format(time.RFC3339Nano))(d)
}

func (r *run) someEdit() {
	r.server.edit(func(s *mtsrev1.EruSpec) {
		switch r.rnd.IntN(5) {
		case 0:
			s.Enabled = false
		case 1, 2:
			s.Enabled = true
		case 3:
			s.Schedule = pick(r, runSchedules)
		case 4:
			s.HistoryLimit = new(int32(5 + r.rnd.IntN(3)))
		}
	})
	r.plans = append(r.plans, planFor(r.t, r.server.eru))
}

// onRestart checks each restart: it moves forward, it is of a slot that the stored spec
// names, whatever a stale cache shows, and no Deployment has been restarted for that
// slot before.
func (r *run) onRestart(before, after *appsv1.Deployment) {
	was, is := restartedAt(before), restartedAt(after)
	if !is.After(was) {
		r.t.Errorf("restartedAt moves from %v to %v", was, is)
	}
	if !r.plans[len(r.plans)-1].contains(is) {
		r.t.Errorf("%v is no slot", is)
	}
	if !r.server.eru.Spec.Enabled {
		r.t.Errorf("a restart for %v, of an Eru that is disabled", is)
	}
	this := restarted{before.UID, is.UTC()}
	if slices.Contains(r.restarted, this) {
		r.t.Errorf("a second restart for %v", is)
	}
	r.restarted = append(r.restarted, this)
	if last := r.server.eru.Status.LastScheduleTime; !r.trouble.stale && last != nil && !is.After(last.Time) {
		r.t.Errorf("a restart for %v, which is decided on already", is)
	}
}

// onStatus checks each status: nothing moves back, nothing that was said changes,
// and history is in order.
func (r *run) onStatus(before, after *mtsrev1.Eru) {
	if was, is := before.Status.LastScheduleTime, after.Status.LastScheduleTime; was != nil && (is == nil || is.Before(was)) {
		r.t.Errorf("lastScheduleTime moves from %v to %v", was, is)
	}
	for i, entry := range after.Status.History {
		if i > 0 && !entry.Slot.Before(&after.Status.History[i-1].Slot) {
			r.t.Errorf("history is not in order: %v", after.Status.History)
		}
		said, ok := r.entries[entry.Slot.Unix()]
		if ok && (said.Result != entry.Result || said.Reason != entry.Reason || !said.StartedAt.Equal(entry.StartedAt)) {
			r.t.Errorf("history of %v changes from %v to %v", entry.Slot, said, entry)
		}
		r.entries[entry.Slot.Unix()] = entry
	}
	if history := after.Status.History; len(history) > 0 && !history[0].Slot.Equal(after.Status.LastScheduleTime) {
		r.t.Errorf("lastScheduleTime is %v, history begins with %v", after.Status.LastScheduleTime, history[0])
	}
	if next, last := after.Status.NextScheduleTime, after.Status.LastScheduleTime; next != nil && last != nil && !last.Before(next) {
		r.t.Errorf("the next slot is %v, the last was %v", next, last)
	}
}

// check checks each slot of the run: it was restarted for, or history has a reason.
func (r *run) check() {
	written := map[int64]bool{}
	for _, restart := range r.restarted {
		written[restart.slot.Unix()] = true
	}
	for unix, entry := range r.entries {
		if entry.Result == mtsrev1.EruRestarted && !written[unix] {
			r.t.Errorf("history says %v was restarted for, and it was not", entry.Slot)
		}
		if entry.Result != mtsrev1.EruRestarted && entry.Reason == "" {
			r.t.Errorf("there is no reason for %v", entry)
		}
		if entry.Result != mtsrev1.EruRestarted && written[unix] && !r.trouble.stale && !r.trouble.people {
			r.t.Errorf("history says %v, and it was restarted for", entry)
		}
	}
	if len(written) < slotsPerRun/20 {
		r.t.Errorf("only %d restarts: nothing was tested", len(written))
	}
	if !r.trouble.edits {
		r.checkEach(written)
	}
}

// checkEach goes through the slots from the newest on. One that nothing is said of
// must be spoken for by the entry after it.
func (r *run) checkEach(written map[int64]bool) {
	st := r.server.eru.Status
	p, spokenFor := r.plans[0], false
	for slot := st.LastScheduleTime.Time; slot.After(r.server.eru.CreationTimestamp.Time); slot = p.before(slot) {
		if entry, ok := r.entries[slot.Unix()]; ok {
			spokenFor = entry.Reason == reasonMissedDeadline || entry.Reason == reasonSuperseded
			continue
		}
		if !spokenFor && !written[slot.Unix()] {
			r.t.Errorf("nothing is said of %v, and nothing was done", slot)
			return
		}
		if !r.trouble.crashes {
			r.t.Errorf("%v has no entry, and nobody was away", slot)
			return
		}
		// A year of minutes that nobody was there for is one entry: go to the next.
		slot = p.next(r.entryBefore(slot))
	}
}

// entryBefore is the newest slot before another that something is said of.
func (r *run) entryBefore(slot time.Time) time.Time {
	before := r.server.eru.CreationTimestamp.Unix()
	for unix := range r.entries {
		if unix < slot.Unix() {
			before = max(before, unix)
		}
	}
	return time.Unix(before, 0)
}

// Two controllers at once, in goroutines of their own, on one clock: what the API
// server lets through is one restart and one entry for each slot.
func TestTwoControllersAtOnce(t *testing.T) {
	r := newRun(t, trouble{leaders: 2}, 1)
	r.server.eru = asked(func(o *mtsrev1.Eru) { o.ResourceVersion = "0"; o.Spec.Schedule = "* * * * *" })
	r.plans = []plan{planFor(t, r.server.eru)}
	for _, v := range r.views {
		v.write = func(do func() error) error { return do() }
	}
	const slots = 200
	for i := range slots {
		r.clock.SetTime(at("00:01:00").Add(time.Duration(i) * time.Minute))
		var group sync.WaitGroup
		for _, v := range r.views {
			group.Go(func() {
				for range 3 {
					v.syncEru()
					v.syncDeployment()
					_, _ = r.survive(v) // Conflicts are as they should be.
				}
			})
		}
		group.Wait()
		r.server.change(func(d *appsv1.Deployment) { d.Generation--; rolledOut(d) })
	}
	if len(r.restarted) != slots || len(r.entries) != slots {
		t.Errorf("%d restarts and %d entries for %d slots", len(r.restarted), len(r.entries), slots)
	}
	for i, restart := range r.restarted {
		if want := at("00:01:00").Add(time.Duration(i) * time.Minute); !restart.slot.Equal(want) {
			t.Fatal(fmt.Errorf("restart %d is for %v, want %v", i, restart.slot, want))
		}
	}
}

// A cache that lags shows an Eru that was disabled, or whose schedule was changed, as it
// was before.
func TestAnEruOfTheCacheThatWasChangedSinceRestartsNothing(t *testing.T) {
	for name, edit := range map[string]func(*mtsrev1.EruSpec){
		"disabled":         func(s *mtsrev1.EruSpec) { s.Enabled = false },
		"another schedule": func(s *mtsrev1.EruSpec) { s.Schedule = "0 0 1 1 *" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, trouble{leaders: 1}, 1)
			r.server.eru = asked(func(o *mtsrev1.Eru) { o.ResourceVersion = "0"; o.Spec.Schedule = "* * * * *" })
			v := r.views[0]
			v.write = func(do func() error) error { return do() }
			v.syncEru()
			v.syncDeployment()
			r.plans = []plan{planFor(t, r.server.eru)}
			r.server.edit(edit)
			r.clock.SetTime(at("00:01:00"))
			if _, err := r.survive(v); !apierrors.IsConflict(err) {
				t.Errorf("the error is %v, want a conflict", err)
			}
			if len(r.restarted) > 0 {
				t.Errorf("restarted for %v", r.restarted)
			}
		})
	}
}
