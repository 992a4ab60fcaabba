// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedules

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/test/fakeserver"
)

// TestHistories reconciles over random histories of each scenario and kind, in which users scale
// the object and edits change the schedules, pause and resume, and compares each write, and each
// state without a fault, with a model of its own.
func TestHistories(t *testing.T) {
	t.Parallel()
	histories := 80
	if os.Getenv("MODELBOX_LONG") != "" {
		histories = 2000 * len(kinds)
	}
	var writes, lost int
	for seed := range uint64(histories) {
		h := newHistory(t, fakeserver.Scenarios[seed%uint64(len(fakeserver.Scenarios))], seed)
		for range 30 {
			h.step()
		}
		h.settle()
		if t.Failed() {
			t.Fatalf("scenario %q, seed %d", h.scenario.Name, seed)
		}
		writes, lost = writes+h.writes, lost+h.lost
	}
	t.Logf("%d histories, %d writes, %d times without a write, because others changed the object twice meanwhile", histories, writes, lost)
	if writes < 5*histories || lost > writes/50 {
		t.Error("too few writes, or too many times without one")
	}
}

// daily is a schedule with its number, as the model has it.
type daily struct {
	fakeserver.Daily
	name     string
	replicas int32
}

func (d *daily) spec() modelv1.Schedule {
	return modelv1.Schedule{Name: d.name, Schedule: d.Expression(), TimeZone: d.Zone.String(), Replicas: d.replicas}
}

// passed returns the last scheduled time of the schedules that is not after an instant.
func passed(all []daily, now time.Time) (at time.Time, replicas int32) {
	for i := range all {
		if slot := all[i].Passed(now); !slot.Before(at) {
			at, replicas = slot, all[i].replicas
		}
	}
	return at, replicas
}

// history is one history: a server with an object, controllers, a clock, and the model.
type history struct {
	t         *testing.T
	scenario  fakeserver.Scenario
	rnd       *rand.Rand
	server    *server
	clock     *clocktesting.FakePassiveClock
	clients   []*fakeserver.Client
	zone      *time.Location
	schedules []daily
	// nested is true during a reconcile within a write of the other controller, calm without
	// faults.
	nested, calm bool

	// The model: the time and the number that are done, the number that the object has, and for a
	// time in status that is not written yet, the number before it and how many changes by users
	// came after it.
	done         time.Time
	doneReplicas int32
	replicas     int32
	pending      bool
	from         int32
	changes      int
	writes, lost int
}

func newHistory(t *testing.T, s fakeserver.Scenario, seed uint64) *history {
	h := &history{t: t, scenario: s, rnd: rand.New(rand.NewPCG(seed, 29))}
	day := fakeserver.ClockChanges[h.rnd.IntN(len(fakeserver.ClockChanges))].Day()
	h.zone = day.Location()
	now := day.Add(-time.Duration(h.rnd.IntN(9*24*60)) * time.Minute)
	h.clock = clocktesting.NewFakePassiveClock(now)
	for i := range 1 + h.rnd.IntN(3) {
		h.schedules = append(h.schedules, h.daily(i))
	}
	h.replicas = int32(h.rnd.IntN(9))
	h.server = newServer(kinds[seed%uint64(len(kinds))], h.specs(), h.replicas, now)
	h.server.Written = h.onWrite
	for i := range s.Leaders {
		h.clients = append(h.clients, h.server.client(func(do func() error) error { return h.write(i, do) }))
	}
	return h
}

func (h *history) daily(i int) daily {
	return daily{fakeserver.RandomDaily(h.rnd, h.zone), fmt.Sprintf("s%d", i), int32(h.rnd.IntN(9))}
}

func (h *history) specs() []modelv1.Schedule {
	var out []modelv1.Schedule
	for i := range h.schedules {
		out = append(out, h.schedules[i].spec())
	}
	return out
}

func (h *history) chance(percent int) bool { return h.rnd.IntN(100) < percent }

// step makes random changes, advances the time, reconciles, and in half of all cases waits until
// there is nothing more to do.
func (h *history) step() {
	if h.scenario.Users && h.chance(40) {
		h.use()
	}
	if h.scenario.Edits && h.chance(15) {
		h.edit()
	}
	if h.scenario.Jumps && h.chance(10) {
		h.pass(time.Duration(h.rnd.Int64N(int64(48*time.Hour))) - 24*time.Hour)
	}
	h.pass(time.Duration(h.rnd.Int64N(int64(20 * time.Hour))))
	if h.scenario.Crashes && h.chance(5) {
		h.pass([]time.Duration{time.Minute, 26 * time.Hour, 400 * 24 * time.Hour}[h.rnd.IntN(3)])
	}
	for range 1 + h.rnd.IntN(3) {
		h.reconcile(h.rnd.IntN(len(h.clients)))
		if h.scenario.Users && h.chance(15) {
			h.use()
		}
	}
	if h.chance(50) {
		h.settle()
	}
}

func (h *history) pass(by time.Duration) { h.clock.SetTime(h.clock.Now().Add(by)) }

// use is a user who scales the object, or changes another field.
func (h *history) use() {
	if h.chance(60) {
		h.replicas = int32(h.rnd.IntN(9))
	}
	h.server.change(h.specs(), h.replicas)
	h.changes++
	h.leave(h.replicas)
}

// leave is the rule for a time in status whose number may not have been written: it is left if
// another client has changed the object twice, or its number.
func (h *history) leave(replicas int32) {
	if h.pending && (h.changes > 1 || replicas != h.from) {
		h.pending = false
		if replicas == h.from {
			h.lost++
		}
	}
}

// edit is a user who changes the schedules, or pauses the object.
func (h *history) edit() {
	switch h.rnd.IntN(5) {
	case 0:
		h.schedules[0].replicas = int32(h.rnd.IntN(9))
	case 4:
		h.schedules[0].name += "-new"
	case 1:
		h.schedules = append(h.schedules[:0:0], h.schedules...)
		h.schedules[h.rnd.IntN(len(h.schedules))] = h.daily(h.rnd.IntN(100) + 10)
	case 2:
		h.server.held = !h.server.held
	case 3:
		h.schedules = append(h.schedules, h.daily(len(h.schedules)+200))
	}
	h.server.change(h.specs(), h.replicas)
	h.changes++
	h.leave(h.replicas)
}

// settle reconciles without faults until nothing changes, and compares the object with the model.
func (h *history) settle() {
	h.calm = true
	for version := -1; version != h.server.Version(); {
		version = h.server.Version()
		for i := range h.clients {
			h.server.kind.sync(h.clients[i])
			h.reconcile(i)
		}
	}
	h.calm = false
	h.apply()
	is := h.server.object()
	st := *is.Status
	if is.Replicas != h.replicas {
		h.t.Errorf("at %v there are %d replicas, want %d; status %+v", h.clock.Now(), is.Replicas, h.replicas, st)
	}
	if name, at := h.name(); st != nil && st.Time.Time.Equal(at) && st.Name != name {
		h.t.Errorf("at %v status has the name %q, want %q", h.clock.Now(), st.Name, name)
	}
	// A write that is due at a time which the clock has left again waits for that time.
	waits := h.pending && h.done.After(h.clock.Now())
	if !h.server.held && (st == nil || !st.Time.Time.Equal(h.done) || st.Pending != nil && !waits || st.Replicas != h.doneReplicas) {
		h.t.Errorf("at %v status is %+v, want %v with %d", h.clock.Now(), st, h.done, h.doneReplicas)
	}
}

// name returns the last time that has passed, and the name of its schedule.
func (h *history) name() (name string, at time.Time) {
	at, _ = passed(h.schedules, h.clock.Now())
	for i := range h.schedules {
		if h.schedules[i].Passed(at).Equal(at) {
			name = h.schedules[i].name
		}
	}
	return name, at
}

// apply is the model of a reconcile: the last time that has passed sets the number, once.
func (h *history) apply() {
	at, replicas := passed(h.schedules, h.clock.Now())
	if h.pending && at.Before(h.done) && !h.done.After(h.clock.Now()) {
		h.pending = false // The schedule was removed.
	}
	if h.server.held {
		return
	}
	if at.After(h.done) || at.Equal(h.done) && (h.pending || replicas != h.doneReplicas) {
		h.done, h.doneReplicas, h.replicas = at, replicas, replicas
	}
}

func (h *history) onWrite(subresource string, before, after client.Object) {
	if is := h.server.kind.fields(after); subresource == "status" {
		h.onStatus(*h.server.kind.fields(before).Status, *is.Status)
	} else {
		h.onScale(is.Replicas)
	}
}

// onStatus is called for each write of status.
func (h *history) onStatus(before, after *modelv1.ScheduleStatus) {
	if after == nil {
		h.t.Error("the status of the schedules is gone")
		return
	}
	if before != nil && after.Time.Time.Before(before.Time.Time) {
		h.t.Errorf("the time in status moves from %v to %v", before.Time, after.Time)
	}
	at, replicas := passed(h.schedules, h.clock.Now())
	if after.Pending != nil && (before == nil || before.Pending == nil || *before.Pending != *after.Pending || !before.Time.Equal(&after.Time)) {
		if !after.Time.Time.Equal(at) || after.Replicas != replicas {
			h.t.Errorf("at %v status has %+v, the time is %v with %d", h.clock.Now(), after, at, replicas)
		}
		h.pending, h.from, h.changes = true, h.replicas, 0
		h.done, h.doneReplicas = at, replicas
	}
	if after.Pending == nil && after.Time.After(h.done) { // The number was there already.
		h.done, h.doneReplicas = at, replicas
		if h.replicas != replicas {
			h.t.Errorf("%v is done without a write: %d replicas, want %d", at, h.replicas, replicas)
		}
	}
	if after.Pending == nil && after.Time.Time.Equal(h.done) && after.Replicas != h.doneReplicas {
		h.doneReplicas = after.Replicas // A user has changed the number of the schedule to what is there.
	}
}

// onScale is called for each write of the number of replicas by a controller.
func (h *history) onScale(replicas int32) {
	at, want := passed(h.schedules, h.clock.Now())
	if !h.pending || !at.Equal(h.done) || replicas != want || h.server.held {
		h.t.Errorf("at %v %d replicas are written; pending %t, done %v; want %d of %v", h.clock.Now(), replicas, h.pending, h.done, want, at)
	}
	h.pending, h.replicas = false, replicas
	h.writes++
}

// write is one write of a controller: the other controller, or a user, may come before it, and it
// may fail or be followed by a crash.
func (h *history) write(controller int, do func() error) error {
	if h.calm {
		return do()
	}
	if len(h.clients) > 1 && !h.nested && h.chance(30) {
		h.nested = true
		h.reconcile((controller + 1) % len(h.clients))
		h.nested = false
	}
	if h.scenario.Users && h.chance(10) {
		h.use()
	}
	if !h.scenario.Crashes {
		return do()
	}
	return fakeserver.Fail(h.rnd, 8, do)
}

// reconcile runs one controller once, whose cache may be stale.
func (h *history) reconcile(i int) {
	if !h.scenario.Stale || h.calm || h.chance(60) {
		h.server.kind.sync(h.clients[i])
	}
	_, _ = fakeserver.Reconcile(h.t.Context(), h.server.kind.reconciler(h.server, h.clients[i], h.clock), key) // Conflicts are expected.
}
