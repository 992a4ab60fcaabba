// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/test/fakeserver"
)

// stage is what is stored after one of the writes around the restart of 12:00:00.
type stage struct {
	Eru        *mtsrev1.Eru
	Deployment *appsv1.Deployment
}

// stagesFile has the stages of commit 90435c2, whose state was in the texts of conditions. Its code
// wrote them: MODELBOX_STAGES=FILE go test -run TestEveryStageContinues, with this file in its
// tree.
const stagesFile = "testdata/stages-90435c2.json"

// TestEveryStageContinues continues each stage of the older code, and of this one, at some later
// times, as after an upgrade or a crash: no scheduled time is lost, and none is restarted twice.
func TestEveryStageContinues(t *testing.T) {
	written := stages(t)
	if file := os.Getenv("MODELBOX_STAGES"); file != "" {
		text, err := json.MarshalIndent(written, "", " ")
		if err = errors.Join(err, os.WriteFile(file, append(text, '\n'), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(stagesFile)
	if err != nil {
		t.Fatal(err)
	}
	older := map[string]*stage{}
	if err := json.Unmarshal(text, &older); err != nil {
		t.Fatal(err)
	}
	if len(older) != len(written) {
		t.Errorf("%d stages of the older code, %d of this one", len(older), len(written))
	}
	for name, s := range older {
		s.continues(t, "90435c2, "+name)
	}
	for name, s := range written {
		s.continues(t, name)
	}
}

// continues checks the restarts and the history of an Eru which continues at some times.
func (s *stage) continues(t *testing.T, name string) {
	for _, clock := range []string{"12:10:00", "12:30:00", "13:00:00"} {
		restarts, history := s.resume(t, clock)
		silent := &stage{s.Eru.DeepCopy(), s.Deployment}
		silent.Eru.Status.Conditions = nil
		if _, same := silent.resume(t, clock); !cmp.Equal(history, same) {
			t.Errorf("%s, at %s: without conditions, history differs: %s", name, clock, cmp.Diff(history, same))
		}
		slot, decided := at("12:00:00"), false
		for _, entry := range s.Eru.Status.History {
			decided = decided || entry.Slot.Time.Equal(slot)
		}
		restarted := restartedAt(s.Deployment).Equal(slot)
		var want []string
		if !decided && !restarted && clock == "12:10:00" {
			want, restarted = append(want, "12:00:00"), true
		}
		if clock == "13:00:00" {
			want = append(want, clock)
		}
		if !slices.Equal(restarts, want) {
			t.Errorf("%s, at %s: restarts for %v, want %v", name, clock, restarts, want)
		}
		entries := slices.DeleteFunc(history, func(entry mtsrev1.EruHistory) bool { return !entry.Slot.Time.Equal(slot) })
		if len(entries) != 1 || (entries[0].Result == mtsrev1.EruRestarted) != restarted {
			t.Errorf("%s, at %s: restarted for 12:00:00: %t, history has %+v", name, clock, restarted, entries)
		}
	}
}

// resume reconciles until nothing changes, and returns for which times the Deployment was
// restarted.
func (s *stage) resume(t *testing.T, clock string) (restarts []string, history []mtsrev1.EruHistory) {
	server := &fakeserver.Server{Written: func(_ string, _, after client.Object) {
		if d, ok := after.(*appsv1.Deployment); ok {
			restarts = append(restarts, short(restartedAt(d)))
		}
	}}
	server.Store(s.Eru.DeepCopy())
	server.Store(s.Deployment.DeepCopy())
	c := &fakeserver.Client{Server: server, Write: func(do func() error) error { return do() }}
	for version := -1; version != server.Version(); {
		fakeserver.Change(server, func(d *appsv1.Deployment) { d.Generation--; rolledOut(d) })
		version = server.Version()
		reconcileAt(t, c, clock)
	}
	return restarts, fakeserver.Stored[*mtsrev1.Eru](server).Status.History
}

func reconcileAt(t *testing.T, c *fakeserver.Client, clock string) {
	syncAll(c)
	r := reconciler(c, clocktesting.NewFakePassiveClock(at(clock)), thawed{})
	_, _ = fakeserver.Reconcile(t.Context(), r, client.ObjectKey{Namespace: "default", Name: "web"})
}

// thawed reads a Namespace that is not frozen.
type thawed struct{ client.Reader }

func (thawed) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

// stages returns what this code stores.
func stages(t *testing.T) map[string]*stage {
	out := map[string]*stage{}
	for _, of := range []struct {
		name       string
		clocks     string
		deployment *appsv1.Deployment
		// refuses says that the API server refuses restarts, dies is the number of writes after
		// which the process dies in its last reconcile.
		refuses bool
		dies    int
	}{
		{"before it", "11:30:00", web(), false, 9},
		{"announced", "11:30:00 12:00:00", web(), false, 1},
		{"restarted", "11:30:00 12:00:00", web(), false, 2},
		{"recorded", "11:30:00 12:00:00", web(), false, 9},
		{"waits for a rollout", "11:30:00 12:00:00", web(rolling), false, 9},
		{"refused", "11:30:00 12:00:00", web(), true, 9},
		{"announced again after it was refused", "11:30:00 12:00:00 12:00:09", web(), true, 1},
		{"failed", "11:30:00 12:00:00 12:10:01", web(), true, 9},
		{"announced after a downtime", "02:30:00 12:00:00", web(), false, 1},
		{"restarted after a downtime", "02:30:00 12:00:00", web(), false, 2},
	} {
		server := &fakeserver.Server{Written: func(string, client.Object, client.Object) {}}
		server.Store(hourlyEru())
		server.Store(of.deployment)
		clocks, writes := strings.Fields(of.clocks), 0
		for i, clock := range clocks {
			writes = 0
			reconcileAt(t, &fakeserver.Client{Server: server, Write: func(do func() error) error {
				switch writes++; {
				case writes > of.dies && i == len(clocks)-1:
					return fakeserver.ErrCut
				case writes == 2 && of.refuses:
					return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("policy says no"))
				}
				return do()
			}}, clock)
		}
		out[of.name] = &stage{fakeserver.Stored[*mtsrev1.Eru](server), fakeserver.Stored[*appsv1.Deployment](server)}
	}
	return out
}
