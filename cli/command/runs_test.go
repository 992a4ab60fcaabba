// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/runs"
	"github.com/modelbox-operator/modelbox-operator/cron"
	domain "github.com/modelbox-operator/modelbox-operator/kinds/eru"
)

func TestRuns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		schedule, zone, after string
		want                  string
	}{
		"no change": {"30 2 * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", `
2026-01-01T02:30:00+01:00
2026-01-02T02:30:00+01:00
2026-01-03T02:30:00+01:00`},
		"a time that does not exist": {"30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", `
2026-03-28T02:30:00+01:00
2026-03-29T03:00:00+02:00 clocks go forward 1h at 2026-03-29 02:00; 02:30 does not exist on this day, so it runs right after the change
2026-03-30T02:30:00+02:00`},
		"a time that comes twice": {"30 2 * * *", "Europe/Berlin", "2026-10-24T22:00:00Z", `
2026-10-25T02:30:00+02:00 02:30 comes twice on this day, and it runs the first time only
2026-10-26T02:30:00+01:00 clocks go back 1h at 2026-10-25 03:00
2026-10-27T02:30:00+01:00`},
		"a change between runs": {"0 12 * * *", "America/New_York", "2026-03-07T12:00:00Z", `
2026-03-07T12:00:00-05:00
2026-03-08T12:00:00-04:00 clocks go forward 1h at 2026-03-08 02:00
2026-03-09T12:00:00-04:00`},
		"each half hour, forward": {"*/30 * * * *", "Europe/Berlin", "2026-03-29T00:15:00Z", `
2026-03-29T01:30:00+01:00
2026-03-29T03:00:00+02:00 clocks go forward 1h at 2026-03-29 02:00
2026-03-29T03:30:00+02:00`},
		"each half hour, back": {"*/30 * * * *", "Europe/Berlin", "2026-10-25T00:15:00Z", `
2026-10-25T02:30:00+02:00 02:30 comes twice on this day, and this is the first of two runs
2026-10-25T02:00:00+01:00 clocks go back 1h at 2026-10-25 03:00; 02:00 comes twice on this day, and this is the second of two runs
2026-10-25T02:30:00+01:00 02:30 comes twice on this day, and this is the second of two runs`},
		"half an hour": {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", `
2026-10-04T02:30:00+11:00 clocks go forward 30m at 2026-10-04 02:00; 02:15 does not exist on this day, so it runs right after the change
2026-10-05T02:15:00+11:00
2026-10-06T02:15:00+11:00`},
		"the end of the gap": {"0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", `
2026-03-29T03:00:00+02:00 clocks go forward 1h at 2026-03-29 02:00
2026-03-30T03:00:00+02:00
2026-03-31T03:00:00+02:00`},
		"years apart": {"0 0 29 2 *", "Europe/Berlin", "2026-01-01T00:00:00Z", `
2028-02-29T00:00:00+01:00 clocks go back 1h at 2027-10-31 03:00`},
		"years apart, after 2037": {"0 0 29 2 *", "Europe/Berlin", "2040-11-01T00:00:00Z", `
2044-02-29T00:00:00+01:00 clocks go back 1h at 2043-10-25 03:00`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schedule, err := runs.New(tc.schedule, tc.zone)
			if err != nil {
				t.Fatal(err)
			}
			after, err := time.Parse(time.RFC3339, tc.after)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Split(strings.TrimSpace(tc.want), "\n")
			var got []string
			for range want {
				if !schedule.Advance(after) {
					t.Fatalf("%d times", len(got))
				}
				after = schedule.Time
				got = append(got, strings.TrimSpace(after.Format(time.RFC3339)+" "+strings.TrimSuffix(schedule.Note, " ("+tc.zone+")")))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A schedule may have no more runs than can be listed.
func TestRunsOfNone(t *testing.T) {
	t.Parallel()
	schedule, err := runs.New("0 0 * * *", "")
	if err != nil {
		t.Fatal(err)
	}
	if end := time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC); schedule.Advance(end) {
		t.Errorf("got %v", schedule.Time)
	}
}

// TestFirst compares the first times of random schedules in two namespaces, and their collisions,
// with those of a list of all times.
func TestFirst(t *testing.T) {
	t.Parallel()
	random, collisions := rand.New(rand.NewPCG(29, 5)), 0
	for range 100 {
		var schedules []*runs.Time
		var all []string
		together, n := map[string]int{}, 1+random.IntN(30)
		for i := range 1 + random.IntN(8) {
			namespace := string(rune('a' + i%2))
			expression := []string{"*/7 * * * *", "30 2 * * *", "30 * * * *", "0 */3 * * *", "0 0 29 2 *"}[random.IntN(5)]
			zone := []string{"Etc/UTC", "Europe/Berlin", "Asia/Kolkata"}[random.IntN(3)]
			app := &unstructured.Unstructured{Object: map[string]any{"kind": "App", "spec": map[string]any{
				"schedules": []any{map[string]any{"name": "a", "schedule": expression, "timeZone": zone, "replicas": int64(1)}},
			}}}
			app.SetNamespace(namespace)
			found, err := runs.Of(app, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			schedules = append(schedules, found)
			schedule, _ := cron.Parse(expression)
			location, _ := cron.LoadLocation(zone)
			for at, ok := schedule.Next(now, location); ok && at.Before(now.AddDate(0, 0, 40)); at, ok = schedule.Next(at, location) {
				key := at.UTC().Format(time.RFC3339) + namespace
				all, together[key] = append(all, key), together[key]+1
			}
		}
		slices.Sort(all)
		got := runs.First(schedules, now, n)
		for i, at := range got {
			key := at.Time.UTC().Format(time.RFC3339) + at.Namespace
			if i < len(all) && (key != all[i] || at.Collisions != together[key]-1) {
				t.Fatalf("%d of %d: %s with %d collisions, want %s with %d", i, n, key, at.Collisions, all[i], together[all[i]]-1)
			}
			collisions += at.Collisions
		}
		if len(got) < min(n, len(all)) {
			t.Fatalf("%d times of %d", len(got), len(all))
		}
	}
	if collisions < 100 {
		t.Errorf("%d collisions: too few", collisions)
	}
}

// TestRestarts compares what is said of each scheduled time of random Erus with the window, the
// start of the object, and its last restart. An object has one row at an instant, whatever else it
// has then.
func TestRestarts(t *testing.T) {
	t.Parallel()
	random, counts := rand.New(rand.NewPCG(38, 1)), map[string]int{}
	for range 200 {
		jitter, uid := []int64{0, 40, 3000}[random.IntN(3)], []types.UID{"", "a", "b", "c"}[random.IntN(4)]
		restarted := now.Add(time.Duration(random.IntN(3)) * 90 * time.Minute)
		object := &unstructured.Unstructured{Object: map[string]any{"kind": "Eru", "spec": map[string]any{
			"enabled": true, "schedule": "*/20 * * * *", "jitterSeconds": jitter,
			"windows": []any{map[string]any{"schedule": "0,30 */2 * * *", "duration": "25m0s"}},
		}}}
		object.SetUID(uid)
		times, err := runs.Of(object, restarted)
		eru := &mtsrev1.Eru{Spec: mtsrev1.EruSpec{Schedule: "*/20 * * * *", JitterSeconds: int32(jitter)}}
		eru.UID = uid
		plan, invalid := domain.NewPlan(eru)
		if err != nil || invalid != nil {
			t.Fatal(err, invalid)
		}
		for at, end := now, now.Add(6*time.Hour); times.Advance(at) && times.Time.Before(end); at = times.Time {
			if !times.Time.After(at) {
				t.Fatalf("two rows at %v", at)
			}
			if times.Field != "spec.schedule" {
				continue
			}
			want := actionAt(times.Time, plan.Start(times.Time), restarted, uid != "", jitter)
			counts[want]++
			if !strings.HasPrefix(times.Action, want) || times.Changes == strings.HasPrefix(want, "no") || want == "restart" && times.Action != want {
				t.Fatalf("%v with jitter %d of %q: %s, want %s", times.Time, jitter, uid, times.Action, want)
			}
		}
	}
	if len(counts) < 8 {
		t.Errorf("not all cases: %v", counts)
	}
}

// actionAt is what happens at a scheduled time with a start, if the windows are open from 0 to 25
// and from 30 to 55 of even hours.
func actionAt(slot, start, restarted time.Time, known bool, jitter int64) string {
	open := func(at time.Time) bool {
		return at.Hour()%2 == 0 && at.Minute()%30 < 25 && at.Truncate(30*time.Minute).Equal(slot.Truncate(30*time.Minute))
	}
	switch {
	case restarted.After(slot):
		return "no restart: skipped until " + restarted.Format(time.RFC3339)
	case !open(slot), known && !open(start):
		return "no restart: outside of the windows"
	case !known && jitter == 3000 && !open(slot.Add(20*time.Minute-time.Second)):
		return "restart within 19m59s, if a window is open then"
	case !known && jitter == 3000:
		return "restart within 19m59s"
	case !known && jitter > 0:
		return "restart within 40s"
	case start.After(slot):
		return "restart after "
	}
	return "restart"
}
