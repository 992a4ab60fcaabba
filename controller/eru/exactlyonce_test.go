// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"context"
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

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/freeze"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
	"github.com/modelbox-operator/modelbox-operator/test/fakeserver"
)

// scenarios are those of the server, and those with windows, which are open from 06:00 to 10:50 and
// from 11:10 to 14:10 UTC, and do not open on a date: the jitter can pass the gap between them. Its
// users pause, scale, roll out, restart, delete and create the Deployment, and freeze the
// namespace; its edits change the Eru's spec.
var scenarios = append(slices.Clone(fakeserver.Scenarios),
	fakeserver.Scenario{Name: "windows", Leaders: 1, Crashes: true, Users: true, Windows: true},
	fakeserver.Scenario{Name: "windows, all", Leaders: 2, Crashes: true, Stale: true, Jumps: true, Users: true, Edits: true, Windows: true})

// slotsPerRun is the number of scheduled times in a run, which gives thousands for all
// scenarios. The fuzzer uses other seeds.
const slotsPerRun = 300

// FuzzExactlyOnce reconciles over hundreds of scheduled times and checks the invariants at
// each write, and for each scheduled time at the end.
func FuzzExactlyOnce(f *testing.F) {
	for seed := range len(scenarios) {
		f.Add(uint8(seed), uint64(seed))
	}
	f.Fuzz(func(t *testing.T, kind uint8, seed uint64) {
		tr := scenarios[int(kind)%len(scenarios)]
		defer func() {
			if t.Failed() {
				t.Logf("scenario: %s, seed %d", tr.Name, seed)
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
	scenario fakeserver.Scenario
	rnd      *rand.Rand
	server   *fakeserver.Server
	clock    *clocktesting.FakePassiveClock
	// newest is the latest time that the clock has had.
	newest  time.Time
	clients []*fakeserver.Client
	// wake is when each controller's next reconcile is due, in monotonic time.
	wake   []time.Duration
	since  time.Duration
	frozen bool
	// nested is true during a reconcile within a write of the other controller.
	nested bool

	plans []*plan
	// daily is the model of the schedule, if it has one.
	daily     *fakeserver.Daily
	restarted []restarted
	entries   map[int64]mtsrev1.EruHistory
}

// restarted is one restart that was written to the server.
type restarted struct {
	deployment types.UID
	slot       time.Time
}

var runSchedules = []string{"* * * * *", "*/7 * * * *", "30 * * * *", "15,45 1-4 * * *", "30 2 * * *"}

func newRun(t *testing.T, tr fakeserver.Scenario, seed uint64) *run {
	r := &run{t: t, scenario: tr, rnd: rand.New(rand.NewPCG(seed, 0)), entries: map[int64]mtsrev1.EruHistory{}}
	zones := []string{"Etc/UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Nuuk", "Antarctica/Troll", "Africa/Casablanca"}
	obj := hourlyEru(func(o *mtsrev1.Eru) {
		o.Spec.Schedule, o.Spec.TimeZone = pick(r, runSchedules), pick(r, zones)
		o.Spec.JitterSeconds = pick(r, []int32{0, 20, 3600})
		o.Spec.StartingDeadlineSeconds = new(pick(r, []int64{0, 30, 600, 7200}))
		o.Spec.HistoryLimit = new(int32(5)) // No decision adds more entries than that.
	})
	if !tr.Edits && r.chance(50) {
		zone, err := time.LoadLocation(obj.Spec.TimeZone)
		if err != nil {
			t.Fatal(err)
		}
		r.daily = new(fakeserver.RandomDaily(r.rnd, zone))
		obj.Spec.Schedule = r.daily.Expression()
	}
	if tr.Windows {
		r.daily = nil
		obj.Spec.Schedule = "30 * * * *" // Jitter, and other rollouts, pass the ends of windows.
		obj.Spec.JitterSeconds = 3600
		obj.Spec.Windows = modelv1.Windows{SkipDates: []string{skippedDate}, Windows: []modelv1.Window{
			{Schedule: "0 6 * * *", Duration: metav1.Duration{Duration: 3 * time.Hour}},
			{Schedule: "0 8 * * *", TimeZone: "Etc/UTC", Duration: metav1.Duration{Duration: 2*time.Hour + 50*time.Minute}},
			{Schedule: "10 11 * * *", TimeZone: "Etc/UTC", Duration: metav1.Duration{Duration: 3 * time.Hour}},
		}}
	}
	r.plans = []*plan{planFor(t, obj)}
	r.server = &fakeserver.Server{Written: r.onWrite}
	r.server.Store(obj)
	r.server.Store(web())
	r.clock, r.newest = clocktesting.NewFakePassiveClock(at("00:00:00")), at("00:00:00")
	for i := range tr.Leaders {
		v := &fakeserver.Client{Server: r.server}
		v.Write = func(do func() error) error { return r.write(i, do) }
		syncAll(v)
		r.clients, r.wake = append(r.clients, v), append(r.wake, 0)
	}
	return r
}

func pick[T any](r *run, from []T) T { return from[r.rnd.IntN(len(from))] }

func (r *run) chance(percent int) bool { return r.rnd.IntN(100) < percent }

// step makes random changes, and then advances time until a reconcile is due.
func (r *run) step() {
	if r.scenario.Users && r.chance(40) {
		r.changeDeployment()
	}
	if r.scenario.Edits && r.chance(3) {
		r.editSpec()
	}
	if r.scenario.Jumps && r.chance(5) {
		r.jump(time.Duration(r.rnd.Int64N(int64(8*time.Hour))) - 4*time.Hour)
	}
	next := slices.Min(r.wake)
	switch {
	case r.scenario.Crashes && r.chance(2):
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
		fakeserver.Change(r.server, func(d *appsv1.Deployment) { d.Generation--; rolledOut(d) })
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

// write is one write of a controller: the other controller may reconcile before it, and
// the write may fail or be followed by a crash.
func (r *run) write(controller int, do func() error) error {
	if r.scenario.Leaders > 1 && !r.nested && r.chance(30) {
		r.nested = true
		r.reconcile((controller + 1) % r.scenario.Leaders)
		r.nested = false
	}
	if !r.scenario.Crashes {
		return do()
	}
	return fakeserver.Fail(r.rnd, 5, do)
}

// reconcile runs one controller, whose cache may be stale, and sets its next reconcile.
func (r *run) reconcile(i int) {
	v := r.clients[i]
	if !r.scenario.Stale || r.chance(60) {
		fakeserver.Sync[*mtsrev1.Eru](v)
	}
	if !r.scenario.Stale || r.chance(60) {
		fakeserver.Sync[*appsv1.Deployment](v)
	}
	result, err := r.reconcileOnce(v)
	switch {
	case err != nil:
		r.wake[i] = r.since + time.Duration(r.rnd.IntN(5000))*time.Millisecond
	case result.RequeueAfter == trigger.Longest && r.chance(90):
		r.wake[i] = r.since + r.naps()*trigger.Longest
	case result.RequeueAfter > 0:
		r.wake[i] = r.since + result.RequeueAfter
	default:
		r.wake[i] = r.since + trigger.Longest // A watch event triggers it.
	}
}

// naps returns how many times trigger.Longest passes until the next scheduled time. There
// are hundreds of these reconciles a day, and all but the last are no-ops.
func (r *run) naps() time.Duration {
	next := r.eru().Status.NextScheduleTime
	if next == nil {
		return 1
	}
	return max(next.Sub(r.clock.Now())/trigger.Longest, 1)
}

func (r *run) reconcileOnce(v *fakeserver.Client) (reconcile.Result, error) {
	return fakeserver.Reconcile(r.t.Context(), reconciler(v, r.clock, namespaceOf{r}), client.ObjectKey{Namespace: "default", Name: "web"})
}

func (r *run) eru() *mtsrev1.Eru { return fakeserver.Stored[*mtsrev1.Eru](r.server) }

// syncAll updates the whole cache of a controller.
func syncAll(v *fakeserver.Client) {
	fakeserver.Sync[*mtsrev1.Eru](v)
	fakeserver.Sync[*appsv1.Deployment](v)
}

// reconciler returns the reconciler as SetupWithManager creates it.
func reconciler(c client.Client, clk *clocktesting.FakePassiveClock, namespaces client.Reader) reconcile.Reconciler {
	return (&Reconciler{Client: c, Recorder: &events.FakeRecorder{}, Clock: clk, Freeze: freeze.Reader{Live: namespaces}}).recorded()
}

// namespaceOf reads the Namespace of a run.
type namespaceOf struct{ run *run }

func (n namespaceOf) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if n.run.scenario.Crashes && n.run.chance(5) {
		return fakeserver.ErrCut
	}
	if n.run.frozen {
		into.SetAnnotations(map[string]string{api.AnnotationFrozen: ""})
	}
	return nil
}

func (namespaceOf) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return fakeserver.ErrCut
}

// changeDeployment changes the Deployment as users do.
func (r *run) changeDeployment() {
	now := r.clock.Now()
	switch r.rnd.IntN(11) {
	case 9, 10:
		r.frozen = r.chance(30)
	case 0:
		fakeserver.Change(r.server, paused)
	case 1, 2, 3:
		fakeserver.Change(r.server, func(d *appsv1.Deployment) { d.Spec.Paused, d.Spec.Replicas = false, new(int32(3)); rolledOut(d) })
	case 4:
		fakeserver.Change(r.server, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(r.rnd.IntN(3))) })
	case 5, 6:
		fakeserver.Change(r.server, rolling)
	case 7:
		fakeserver.Change(r.server, func(d *appsv1.Deployment) { kubectlRolloutRestart(d, now) })
	case 8:
		fakeserver.Delete[*appsv1.Deployment](r.server)
		if r.chance(70) {
			r.create(now)
		}
	}
	if fakeserver.Stored[*appsv1.Deployment](r.server) == nil && r.chance(50) {
		r.create(now)
	}
}

// create creates another Deployment.
func (r *run) create(now time.Time) {
	r.server.Store(web(func(d *appsv1.Deployment) {
		d.CreationTimestamp, d.UID = metav1.NewTime(now), types.UID(fmt.Sprint("web-", r.server.Version()))
	}))
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
	fakeserver.Change(r.server, func(obj *mtsrev1.Eru) {
		switch s := &obj.Spec; r.rnd.IntN(5) {
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
	r.plans = append(r.plans, planFor(r.t, r.eru()))
}

func (r *run) onWrite(_ string, before, after client.Object) {
	switch after := after.(type) {
	case *appsv1.Deployment:
		r.onRestart(before.(*appsv1.Deployment), after)
	case *mtsrev1.Eru:
		r.onStatus(before.(*mtsrev1.Eru), after)
	}
}

// onRestart checks each restart: restartedAt moves forward, it is a scheduled time of the
// stored spec, also with a stale cache, and the Deployment has not been restarted for it
// before.
func (r *run) onRestart(before, after *appsv1.Deployment) {
	was, is := restartedAt(before), restartedAt(after)
	if !is.After(was) {
		r.t.Errorf("restartedAt moves from %v to %v", was, is)
	}
	if !r.plans[len(r.plans)-1].Latest(is).Equal(is) || r.daily != nil && !r.daily.Passed(is).Equal(is) {
		r.t.Errorf("%v is not a scheduled time", is)
	}
	if r.frozen {
		r.t.Errorf("a restart for %v in a frozen namespace", is)
	}
	if !r.eru().Spec.Enabled {
		r.t.Errorf("a restart for %v by a disabled Eru", is)
	}
	if now := r.clock.Now(); r.scenario.Windows && !isOpen(is, now) {
		r.t.Errorf("a restart for %v at %v, outside of the windows", is, now)
	}
	this := restarted{before.UID, is.UTC()}
	if slices.Contains(r.restarted, this) {
		r.t.Errorf("a second restart for %v", is)
	}
	r.restarted = append(r.restarted, this)
	if last := r.eru().Status.LastScheduleTime; !r.scenario.Stale && last != nil && !is.After(last.Time) {
		r.t.Errorf("a restart for %v, which has already been decided", is)
	}
}

// skippedDate is a date on which no window opens, the second day of a run.
var skippedDate = at("00:00:00").AddDate(0, 0, 1).UTC().Format(time.DateOnly)

// isOpen is the model of the windows: whether one window, or two that overlap, are open from one
// instant to another one.
func isOpen(from, to time.Time) bool {
	windowOf := func(at time.Time) int {
		switch minute := at.UTC().Hour()*60 + at.UTC().Minute(); {
		case minute >= 6*60 && minute < 10*60+50:
			return 1
		case minute >= 11*60+10 && minute < 14*60+10:
			return 2
		}
		return 0
	}
	date := from.UTC().Format(time.DateOnly)
	return windowOf(from) > 0 && windowOf(from) == windowOf(to) && date == to.UTC().Format(time.DateOnly) && date != skippedDate
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
		if entry.Reason == eru.ReasonOutsideWindow && isOpen(entry.Slot.Time, entry.Slot.Add(4*time.Hour)) {
			r.t.Errorf("the history has %v, which is within the windows", entry)
		}
		if entry.Result != mtsrev1.EruRestarted && entry.Reason == "" {
			r.t.Errorf("there is no reason for %v", entry)
		}
		if entry.Result != mtsrev1.EruRestarted && written[unix] && !r.scenario.Stale && !r.scenario.Users {
			r.t.Errorf("the history has %v, but there was a restart", entry)
		}
	}
	least := slotsPerRun / 20
	if r.scenario.Windows {
		least /= 4 // Two thirds of a day are outside of them.
	}
	if len(written) < least {
		r.t.Errorf("only %d restarts: the run tested too little", len(written))
	}
	if !r.scenario.Edits {
		r.checkEach(written)
	}
}

// checkEach checks the scheduled times from the newest on. One without an entry must be
// covered by the entry after it.
func (r *run) checkEach(written map[int64]bool) {
	st := r.eru().Status
	p, covered := r.plans[0], false
	before := func(slot time.Time) time.Time { return p.Before(slot).Time }
	if r.daily != nil {
		before = func(slot time.Time) time.Time { return r.daily.Passed(slot.Add(-time.Second)) }
	}
	for slot := st.LastScheduleTime.Time; slot.After(r.eru().CreationTimestamp.Time); slot = before(slot) {
		if entry, ok := r.entries[slot.Unix()]; ok {
			covered = entry.Reason == reasonMissedDeadline || entry.Reason == reasonSuperseded
			continue
		}
		if !covered && !written[slot.Unix()] {
			r.t.Errorf("%v has neither an entry nor a restart", slot)
			return
		}
		if !r.scenario.Crashes {
			r.t.Errorf("%v has no entry, although there was no downtime", slot)
			return
		}
		// A downtime has one entry, also for a year of minutes: continue with the next.
		slot = p.next(r.entryBefore(slot))
	}
}

// entryBefore returns the newest scheduled time with an entry before another one.
func (r *run) entryBefore(slot time.Time) time.Time {
	before := r.eru().CreationTimestamp.Unix()
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
	r := newRun(t, fakeserver.Scenario{Leaders: 2}, 1)
	r.server.Store(hourlyEru(func(o *mtsrev1.Eru) { o.Spec.Schedule = "* * * * *" }))
	r.plans = []*plan{planFor(t, r.eru())}
	for _, v := range r.clients {
		v.Write = func(do func() error) error { return do() }
	}
	const slots = 200
	for i := range slots {
		r.clock.SetTime(at("00:01:00").Add(time.Duration(i) * time.Minute))
		var group sync.WaitGroup
		for _, v := range r.clients {
			group.Go(func() {
				for range 3 {
					syncAll(v)
					_, _ = r.reconcileOnce(v) // Conflicts are expected.
				}
			})
		}
		group.Wait()
		fakeserver.Change(r.server, func(d *appsv1.Deployment) { d.Generation--; rolledOut(d) })
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
