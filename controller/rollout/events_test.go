// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/modelbox-operator/modelbox-operator/controller/event"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

const (
	begun     = "Normal RolloutBegun Deployment \"box\": a rollout has begun"
	completed = "Normal RolloutCompleted Deployment \"box\": the rollout was completed in %ds"
)

var start = time.Unix(1e9, 0)

// at returns the instant some seconds after the start.
func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// step is an observation, some seconds after the start, with the events that it causes. restart
// is a new process that makes the observation.
type step struct {
	at      int
	o       Observation
	restart bool
	want    []string
}

func TestEvents(t *testing.T) {
	atRest := Observation{Child: "d", Revision: "1", Complete: true}
	// The spec of the child was changed, and the cluster has not acted on it yet.
	written := Observation{Child: "d", Revision: "1"}
	notReady := func(o Observation, since int) Observation {
		o.NotReadySince = at(since)
		return o
	}
	for name, steps := range map[string][]step{
		"a new object": {
			{0, Observation{Child: "d", New: true}, false, []string{begun}},
			{1, notReady(Observation{Child: "d", Revision: "1", InProgress: true}, 0), false, nil},
			{40, notReady(Observation{Child: "d", Revision: "1", InProgress: true}, 0), false, nil},
			{42, notReady(Observation{Child: "d", Revision: "1", Complete: true}, 0), false, []string{fmt.Sprintf(completed, 42)}},
			{43, atRest, false, nil},
		},
		"a new template": {
			{0, atRest, false, nil},
			{10, written, false, nil},
			{11, notReady(Observation{Child: "d", Revision: "2", InProgress: true}, 10), false, []string{begun}},
			{12, notReady(Observation{Child: "d", Revision: "2", InProgress: true}, 10), false, nil},
			{71, notReady(Observation{Child: "d", Revision: "2", Complete: true}, 10), false, []string{fmt.Sprintf(completed, 60)}},
			{72, Observation{Child: "d", Revision: "2", Complete: true}, false, nil},
		},
		"a new template whose begin was not observed": {
			{0, atRest, false, nil},
			{11, Observation{Child: "d", Revision: "2", Complete: true}, false, []string{begun, fmt.Sprintf(completed, 0)}},
		},
		"a template that changes again": {
			{0, atRest, false, nil},
			{10, notReady(Observation{Child: "d", Revision: "2", InProgress: true}, 10), false, []string{begun}},
			{20, notReady(Observation{Child: "d", Revision: "3", InProgress: true}, 10), false, []string{begun}},
			{25, notReady(Observation{Child: "d", Revision: "3", Complete: true}, 10), false, []string{fmt.Sprintf(completed, 5)}},
		},
		"scaling, and a pod that restarts": {
			{0, atRest, false, nil},
			{10, written, false, nil},
			{11, notReady(written, 10), false, nil},
			{20, notReady(atRest, 10), false, nil},
			{30, written, false, nil},
			{31, notReady(atRest, 30), false, nil},
		},
		"a child that is created again": {
			{0, atRest, false, nil},
			{10, Observation{Child: "e"}, false, []string{begun}},
			{11, notReady(Observation{Child: "e", Revision: "1", InProgress: true}, 10), false, nil},
			{20, notReady(Observation{Child: "e", Revision: "1", Complete: true}, 10), false, []string{fmt.Sprintf(completed, 10)}},
		},
		"a process that starts at rest": {
			{0, atRest, true, nil},
			{1, atRest, true, nil},
		},
		"a process that starts in the middle of a rollout": {
			{0, atRest, false, nil},
			{10, notReady(Observation{Child: "d", Revision: "2", InProgress: true}, 10), false, []string{begun}},
			{20, notReady(Observation{Child: "d", Revision: "2", InProgress: true}, 10), true, nil},
			{40, notReady(Observation{Child: "d", Revision: "2", Complete: true, CompletedAt: at(40)}, 10), false, []string{fmt.Sprintf(completed, 30)}},
		},
		"a process that starts after a rollout, and the status is not written": {
			{0, notReady(Observation{Child: "d", Revision: "2", InProgress: true}, 0), false, nil},
			{90, notReady(Observation{Child: "d", Revision: "2", Complete: true, CompletedAt: at(60)}, 0), true, []string{fmt.Sprintf(completed, 60)}},
		},
		"a process that starts between the write of a template and the begin of its rollout": {
			{0, atRest, false, nil},
			{10, written, false, nil},
			{20, notReady(written, 10), true, nil},
			{21, notReady(Observation{Child: "d", Revision: "2", InProgress: true}, 10), false, []string{begun}},
			{31, notReady(Observation{Child: "d", Revision: "2", Complete: true}, 10), false, []string{fmt.Sprintf(completed, 10)}},
		},
		"a process that starts while a pod is not available": {
			{0, Observation{Child: "d", Revision: "1", Complete: true, CompletedAt: at(-100)}, false, nil},
			{10, notReady(Observation{Child: "d", Revision: "1", CompletedAt: at(-100)}, 5), true, nil},
			{20, notReady(Observation{Child: "d", Revision: "1", Complete: true, CompletedAt: at(-100)}, 5), false, nil},
		},
		"a process that starts when a template was changed while none ran": {
			{0, Observation{Child: "d", Revision: "2", InProgress: true}, true, []string{begun}},
			{9, notReady(Observation{Child: "d", Revision: "2", Complete: true}, 0), false, []string{fmt.Sprintf(completed, 9)}},
		},
		"a revision that is removed from the child": {
			{0, atRest, false, nil},
			{1, Observation{Child: "d", Complete: true}, false, nil},
			{2, atRest, false, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := events.NewFakeRecorder(100)
			e := newEvents(recorder)
			for _, step := range steps {
				if step.restart {
					e = newEvents(recorder)
				}
				e.Observe(box("u"), step.o, at(step.at))
				if got := emitted(recorder); !slices.Equal(got, step.want) {
					t.Errorf("after %d s: events %q, want %q", step.at, got, step.want)
				}
			}
		})
	}
}

func newEvents(recorder events.EventRecorder) *Events {
	return NewEvents(recorder, schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Box"}, "Deployment")
}

func box(uid types.UID) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "box", UID: uid}}
}

func emitted(recorder *events.FakeRecorder) []string {
	var got []string
	for {
		select {
		case note := <-recorder.Events:
			got = append(got, note)
		default:
			return got
		}
	}
}

// TestEventsAreBounded changes a template a hundred times a second: each change is a rollout that
// is complete at once, as with 0 replicas.
func TestEventsAreBounded(t *testing.T) {
	recorder := events.NewFakeRecorder(10000)
	e := newEvents(recorder)
	for i := range 60 * 100 {
		now := start.Add(time.Duration(i) * 10 * time.Millisecond)
		e.Observe(box("u"), Observation{Child: "d", Revision: strconv.Itoa(i + 1), Complete: true}, now)
	}
	if got, most := len(emitted(recorder)), 2*(event.Burst+4); got > most || got < 2 {
		t.Errorf("%d events in a minute, want at most %d", got, most)
	}
	// A later rollout that lasts has its events, although the limit did not allow its begin.
	later := start.Add(time.Minute)
	e.Observe(box("u"), Observation{Child: "d", Revision: "x", InProgress: true}, later)
	e.Observe(box("u"), Observation{Child: "d", Revision: "x", InProgress: true}, later.Add(20*time.Second))
	e.Observe(box("u"), Observation{Child: "d", Revision: "x", Complete: true}, later.Add(50*time.Second))
	if got, want := emitted(recorder), []string{begun, fmt.Sprintf(completed, 50)}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	e := newEvents(&events.FakeRecorder{})
	for i := range 3 * maxOwners {
		e.Observe(box(types.UID(strconv.Itoa(i))), Observation{Child: "d", Revision: "1", InProgress: i%2 == 0}, start)
	}
	if len(e.owners) > maxOwners {
		t.Errorf("%d owners are remembered, want at most %d", len(e.owners), maxOwners)
	}
}

func TestObservingAtRestAllocatesNothing(t *testing.T) {
	e, owner := newEvents(&events.FakeRecorder{}), box("u")
	o := Observation{Child: "d", Revision: "1", Complete: true}
	if got := testing.AllocsPerRun(100, func() { e.Observe(owner, o, start) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

func TestNewObservation(t *testing.T) {
	ready := metav1.Condition{Type: status.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start)}
	unready := ready
	unready.Status = metav1.ConditionFalse
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       Observation
	}{
		"no status": {nil, Observation{New: true}},
		"ready":     {[]metav1.Condition{ready}, Observation{}},
		"not ready": {[]metav1.Condition{unready}, Observation{NotReadySince: start}},
	} {
		if got := NewObservation(test.conditions); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
