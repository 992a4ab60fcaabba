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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
)

// scenario is a set of random faults and changes in a run.
type scenario struct {
	name string
	// leaders is how many controllers reconcile, without leader election.
	leaders int
	// crashes end a reconcile before or after any write, fail a write, or lose the
	// response to a write; after that there is a downtime.
	crashes bool
	// stale makes caches stale, also after the controller's own writes.
	stale bool
	// jumps sets the clock forward and back.
	jumps bool
	// users pause, scale, roll out, restart, delete and create the Deployment.
	users bool
	// edits change the Eru's spec.
	edits bool
}

var scenarios = []scenario{
	{name: "none", leaders: 1},
	{name: "users", leaders: 1, users: true},
	{name: "crashes", leaders: 1, crashes: true},
	{name: "crashes and users", leaders: 1, crashes: true, users: true},
	{name: "a jumping clock", leaders: 1, crashes: true, jumps: true},
	{name: "stale caches", leaders: 1, crashes: true, stale: true, users: true},
	{name: "two leaders", leaders: 2, crashes: true, stale: true},
	{name: "all", leaders: 2, crashes: true, stale: true, jumps: true, users: true, edits: true},
}

// slotsPerRun is the number of scheduled times in a run, which gives thousands for all
// scenarios. The fuzzer uses other seeds.
const slotsPerRun = 300

// FuzzExactlyOnce reconciles over hundreds of scheduled times and checks the invariants at
// each write, and for each scheduled time at the end.
func FuzzExactlyOnce(f *testing.F) {
	for kind := range scenarios {
		f.Add(uint8(kind), uint64(kind))
	}
	f.Fuzz(func(t *testing.T, kind uint8, seed uint64) {
		tr := scenarios[int(kind)%len(scenarios)]
		defer func() {
			if t.Failed() {
				t.Logf("scenario: %s, seed %d", tr.name, seed)
			}
		}()
		r := newRun(t, tr, seed)
		for len(r.entries) < slotsPerRun && !t.Failed() {
			r.step()
		}
		r.check()
	})
}

// run is one run: a server, controllers, a clock, and the observed writes.
type run struct {
	t        *testing.T
	scenario scenario
	rnd      *rand.Rand
	server   *server
	clock    *clocktesting.FakePassiveClock
	// newest is the latest time that the clock has had.
	newest  time.Time
	clients []*cachedClient
	// wake is when each controller's next reconcile is due, in monotonic time.
	wake  []time.Duration
	since time.Duration
	// nested is true during a reconcile within a write of the other controller.
	nested bool

	plans     []plan
	restarted []restarted
	entries   map[int64]mtsrev1.EruHistory
}

// restarted is one restart that was written to the server.
type restarted struct {
	deployment types.UID
	slot       time.Time
}

var runSchedules = []string{"* * * * *", "*/7 * * * *", "30 * * * *", "15,45 1-4 * * *", "30 2 * * *"}

func newRun(t *testing.T, tr scenario, seed uint64) *run {
	r := &run{t: t, scenario: tr, rnd: rand.New(rand.NewPCG(seed, 0)), entries: map[int64]mtsrev1.EruHistory{}}
	zones := []string{"Etc/UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}
	obj := hourlyEru(func(o *mtsrev1.Eru) {
		o.ResourceVersion = "0"
		o.Spec.Schedule, o.Spec.TimeZone = pick(r, runSchedules), pick(r, zones)
		o.Spec.JitterSeconds = pick(r, []int32{0, 20, 3600})
		o.Spec.StartingDeadlineSeconds = new(pick(r, []int64{0, 30, 600, 7200}))
		o.Spec.HistoryLimit = new(int32(5)) // No decision adds more entries than that.
	})
	r.plans = []plan{planFor(t, obj)}
	r.server = &server{eru: obj, deployment: web(), restarts: r.onRestart, statuses: r.onStatus}
	r.clock, r.newest = clocktesting.NewFakePassiveClock(at("00:00:00")), at("00:00:00")
	for i := range tr.leaders {
		v := &cachedClient{server: r.server}
		v.write = func(do func() error) error { return r.write(i, do) }
		v.syncEru()
		v.syncDeployment()
		r.clients, r.wake = append(r.clients, v), append(r.wake, 0)
	}
	return r
}

func pick[T any](r *run, from []T) T { return from[r.rnd.IntN(len(from))] }

func (r *run) chance(percent int) bool { return r.rnd.IntN(100) < percent }

// step makes random changes, and then advances time until a reconcile is due.
func (r *run) step() {
	if r.scenario.users && r.chance(40) {
		r.changeDeployment()
	}
	if r.scenario.edits && r.chance(3) {
		r.editSpec()
	}
	if r.scenario.jumps && r.chance(5) {
		r.jump(time.Duration(r.rnd.Int64N(int64(8*time.Hour))) - 4*time.Hour)
	}
	next := slices.Min(r.wake)
	switch {
	case r.scenario.crashes && r.chance(2):
		r.pass(next-r.since, r.downtime())
	case r.chance(10): // A watch event triggers a reconcile before.
		r.pass(time.Duration(r.rnd.Int64N(int64(max(next-r.since, 1)))))
	default:
		r.pass(next - r.since)
	}
	for i := range r.clients {
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

// pass advances the time.
func (r *run) pass(spans ...time.Duration) {
	for _, span := range spans {
		span = max(span, 0)
		r.since += span
		r.jump(span)
	}
}

// jump changes the clock.
func (r *run) jump(by time.Duration) {
	r.clock.SetTime(r.clock.Now().Add(by))
	if r.clock.Now().After(r.newest) {
		r.newest = r.clock.Now()
	}
}

var errCut = errors.New("the connection was cut")

type crash struct{}

// write is one write of a controller: the other controller may reconcile before it, and
// the write may fail or be followed by a crash.
func (r *run) write(controller int, do func() error) error {
	if r.scenario.leaders > 1 && !r.nested && r.chance(30) {
		r.nested = true
		r.reconcile((controller + 1) % r.scenario.leaders)
		r.nested = false
	}
	fate := 100
	if r.scenario.crashes {
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

// reconcile runs one controller, whose cache may be stale, and sets its next reconcile.
func (r *run) reconcile(i int) {
	v := r.clients[i]
	if !r.scenario.stale || r.chance(60) {
		v.syncEru()
	}
	if !r.scenario.stale || r.chance(60) {
		v.syncDeployment()
	}
	result, err := r.reconcileOnce(v)
	switch {
	case err != nil:
		r.wake[i] = r.since + time.Duration(r.rnd.IntN(5000))*time.Millisecond
	case result.RequeueAfter == maxRequeueAfter && r.chance(90):
		r.wake[i] = r.since + r.naps()*maxRequeueAfter
	case result.RequeueAfter > 0:
		r.wake[i] = r.since + result.RequeueAfter
	default:
		r.wake[i] = r.since + maxRequeueAfter // A watch event triggers it.
	}
}

// naps returns how many times maxRequeueAfter passes until the next scheduled time. There
// are hundreds of these reconciles a day, and all but the last are no-ops.
func (r *run) naps() time.Duration {
	next := r.server.eru.Status.NextScheduleTime
	if next == nil {
		return 1
	}
	return max(next.Sub(r.clock.Now())/maxRequeueAfter, 1)
}

func (r *run) reconcileOnce(v *cachedClient) (result reconcile.Result, err error) {
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

// reconciler returns the reconciler as SetupWithManager creates it.
func reconciler(c client.Client, clk *clocktesting.FakePassiveClock) reconcile.Reconciler {
	return (&Reconciler{Client: c, Recorder: &events.FakeRecorder{}, Clock: clk}).recorded()
}

// changeDeployment changes the Deployment as users do.
func (r *run) changeDeployment() {
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

// kubectlRolloutRestart is a restart by "kubectl rollout restart". The fraction of a
// second distinguishes it from those of an Eru. Its time does not move back with the
// clock: an older value would remove the record that a restart was done.
func kubectlRolloutRestart(d *appsv1.Deployment, now time.Time) {
	if last := restartedAt(d); last.After(now) {
		now = last
	}
	restartedBy(now.Add(time.Millisecond).Format(time.RFC3339Nano))(d)
}

func (r *run) editSpec() {
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

// onRestart checks each restart: restartedAt moves forward, it is a scheduled time of the
// stored spec, also with a stale cache, and the Deployment has not been restarted for it
// before.
func (r *run) onRestart(before, after *appsv1.Deployment) {
	was, is := restartedAt(before), restartedAt(after)
	if !is.After(was) {
		r.t.Errorf("restartedAt moves from %v to %v", was, is)
	}
	if !r.plans[len(r.plans)-1].contains(is) {
		r.t.Errorf("%v is not a scheduled time", is)
	}
	if !r.server.eru.Spec.Enabled {
		r.t.Errorf("a restart for %v by a disabled Eru", is)
	}
	this := restarted{before.UID, is.UTC()}
	if slices.Contains(r.restarted, this) {
		r.t.Errorf("a second restart for %v", is)
	}
	r.restarted = append(r.restarted, this)
	if last := r.server.eru.Status.LastScheduleTime; !r.scenario.stale && last != nil && !is.After(last.Time) {
		r.t.Errorf("a restart for %v, which has already been decided", is)
	}
}

// onStatus checks each status: nothing moves back, existing entries of the history do not
// change, and the history is in order.
func (r *run) onStatus(before, after *mtsrev1.Eru) {
	if was, is := before.Status.LastScheduleTime, after.Status.LastScheduleTime; was != nil && (is == nil || is.Before(was)) {
		r.t.Errorf("lastScheduleTime moves from %v to %v", was, is)
	}
	for i, entry := range after.Status.History {
		if i > 0 && !entry.Slot.Before(&after.Status.History[i-1].Slot) {
			r.t.Errorf("history is not in order: %v", after.Status.History)
		}
		before, ok := r.entries[entry.Slot.Unix()]
		if ok && (before.Result != entry.Result || before.Reason != entry.Reason || !before.StartedAt.Equal(entry.StartedAt)) {
			r.t.Errorf("history of %v changes from %v to %v", entry.Slot, before, entry)
		}
		r.entries[entry.Slot.Unix()] = entry
	}
	if history := after.Status.History; len(history) > 0 && !history[0].Slot.Equal(after.Status.LastScheduleTime) {
		r.t.Errorf("lastScheduleTime is %v, history begins with %v", after.Status.LastScheduleTime, history[0])
	}
	if next, last := after.Status.NextScheduleTime, after.Status.LastScheduleTime; next != nil && last != nil && !last.Before(next) {
		r.t.Errorf("the next scheduled time is %v, the last was %v", next, last)
	}
}

// check checks each scheduled time of the run: there was a restart for it, or the history
// has a reason.
func (r *run) check() {
	written := map[int64]bool{}
	for _, restart := range r.restarted {
		written[restart.slot.Unix()] = true
	}
	for unix, entry := range r.entries {
		if entry.Result == mtsrev1.EruRestarted && !written[unix] {
			r.t.Errorf("the history has a restart for %v, but there was none", entry.Slot)
		}
		if entry.Result != mtsrev1.EruRestarted && entry.Reason == "" {
			r.t.Errorf("there is no reason for %v", entry)
		}
		if entry.Result != mtsrev1.EruRestarted && written[unix] && !r.scenario.stale && !r.scenario.users {
			r.t.Errorf("the history has %v, but there was a restart", entry)
		}
	}
	if len(written) < slotsPerRun/20 {
		r.t.Errorf("only %d restarts: the run tested too little", len(written))
	}
	if !r.scenario.edits {
		r.checkEach(written)
	}
}

// checkEach checks the scheduled times from the newest on. One without an entry must be
// covered by the entry after it.
func (r *run) checkEach(written map[int64]bool) {
	st := r.server.eru.Status
	p, covered := r.plans[0], false
	for slot := st.LastScheduleTime.Time; slot.After(r.server.eru.CreationTimestamp.Time); slot = p.before(slot) {
		if entry, ok := r.entries[slot.Unix()]; ok {
			covered = entry.Reason == reasonMissedDeadline || entry.Reason == reasonSuperseded
			continue
		}
		if !covered && !written[slot.Unix()] {
			r.t.Errorf("%v has neither an entry nor a restart", slot)
			return
		}
		if !r.scenario.crashes {
			r.t.Errorf("%v has no entry, although there was no downtime", slot)
			return
		}
		// A downtime has one entry, also for a year of minutes: continue with the next.
		slot = p.next(r.entryBefore(slot))
	}
}

// entryBefore returns the newest scheduled time with an entry before another one.
func (r *run) entryBefore(slot time.Time) time.Time {
	before := r.server.eru.CreationTimestamp.Unix()
	for unix := range r.entries {
		if unix < slot.Unix() {
			before = max(before, unix)
		}
	}
	return time.Unix(before, 0)
}

// With two controllers in concurrent goroutines, the API server accepts one restart and
// one entry for each scheduled time.
func TestTwoConcurrentControllers(t *testing.T) {
	r := newRun(t, scenario{leaders: 2}, 1)
	r.server.eru = hourlyEru(func(o *mtsrev1.Eru) { o.ResourceVersion = "0"; o.Spec.Schedule = "* * * * *" })
	r.plans = []plan{planFor(t, r.server.eru)}
	for _, v := range r.clients {
		v.write = func(do func() error) error { return do() }
	}
	const slots = 200
	for i := range slots {
		r.clock.SetTime(at("00:01:00").Add(time.Duration(i) * time.Minute))
		var group sync.WaitGroup
		for _, v := range r.clients {
			group.Go(func() {
				for range 3 {
					v.syncEru()
					v.syncDeployment()
					_, _ = r.reconcileOnce(v) // Conflicts are expected.
				}
			})
		}
		group.Wait()
		r.server.change(func(d *appsv1.Deployment) { d.Generation--; rolledOut(d) })
	}
	if len(r.restarted) != slots || len(r.entries) != slots {
		t.Errorf("%d restarts and %d entries for %d scheduled times", len(r.restarted), len(r.entries), slots)
	}
	for i, restart := range r.restarted {
		if want := at("00:01:00").Add(time.Duration(i) * time.Minute); !restart.slot.Equal(want) {
			t.Fatal(fmt.Errorf("restart %d is for %v, want %v", i, restart.slot, want))
		}
	}
}

// A stale cache has the old version of an Eru that was disabled, or whose schedule was
// changed.
func TestAStaleEruRestartsNothing(t *testing.T) {
	for name, edit := range map[string]func(*mtsrev1.EruSpec){
		"disabled":         func(s *mtsrev1.EruSpec) { s.Enabled = false },
		"another schedule": func(s *mtsrev1.EruSpec) { s.Schedule = "0 0 1 1 *" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, scenario{leaders: 1}, 1)
			r.server.eru = hourlyEru(func(o *mtsrev1.Eru) { o.ResourceVersion = "0"; o.Spec.Schedule = "* * * * *" })
			v := r.clients[0]
			v.write = func(do func() error) error { return do() }
			v.syncEru()
			v.syncDeployment()
			r.plans = []plan{planFor(t, r.server.eru)}
			r.server.edit(edit)
			r.clock.SetTime(at("00:01:00"))
			if result, err := r.reconcileOnce(v); !isStale(result, err) {
				t.Errorf("the result is %v, %v, want a retry when the cache is up to date", result, err)
			}
			if len(r.restarted) > 0 {
				t.Errorf("restarted for %v", r.restarted)
			}
		})
	}
}
