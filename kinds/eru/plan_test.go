// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
)

var midnight = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// planWith returns the plan of a stored Eru with the defaults and some changes.
func planWith(t *testing.T, change func(*mtsrev1.Eru)) Plan {
	t.Helper()
	obj := named("web", complete())
	obj.UID = "eru-uid"
	change(obj)
	p, err := NewPlan(obj)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The jitter of a scheduled time is always the same, within its bound, and never so long
// that the next scheduled time comes first.
func TestJitterKeepsItsBoundsAndTheOrderOfSlots(t *testing.T) {
	t.Parallel()
	for _, jitter := range []int32{0, 1, 30, 59, 60, 3600, 86400} {
		p := planWith(t, func(o *mtsrev1.Eru) { o.Spec.Schedule, o.Spec.JitterSeconds = "*/1 0-11 * * *", jitter })
		seen := map[time.Duration]bool{}
		for slot := p.Next(midnight).Time; slot.Before(midnight.AddDate(0, 0, 2)); slot = p.Next(slot).Time {
			delay := p.Delay(slot)
			seen[delay] = true
			if again := p.Delay(slot); again != delay {
				t.Fatalf("jitter %d: %v has the delays %v and %v", jitter, slot, delay, again)
			}
			if delay < 0 || delay > time.Duration(jitter)*time.Second || !p.Start(slot).Before(p.Next(slot).Time) {
				t.Fatalf("jitter %d: %v is delayed by %v", jitter, slot, delay)
			}
			due, before := p.Due(midnight, p.Start(slot))
			earlier, _ := p.Due(midnight, p.Start(slot).Add(-time.Second))
			if !due.Equal(slot) || !before.Equal(earlier) {
				t.Fatalf("jitter %d: %v is not due at %v exactly", jitter, slot, p.Start(slot))
			}
		}
		if want := min(int(jitter)+1, 60); len(seen) < want {
			t.Errorf("jitter %d: only %d delays in two half days, want %d", jitter, len(seen), want)
		}
	}
}

func TestJitterSpreadsErusOfOneSlot(t *testing.T) {
	t.Parallel()
	var tenths [10]int
	for i := range 1000 {
		p := planWith(t, func(o *mtsrev1.Eru) {
			o.UID, o.Spec.JitterSeconds = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), 599
		})
		tenths[p.Delay(midnight)/time.Minute]++
	}
	for i, n := range tenths {
		if n < 60 || n > 140 {
			t.Errorf("minute %d has %d of 1000 Erus, want about 100: %v", i, n, tenths)
		}
	}
}

// TestWhatIsAnnouncedHappens has random schedules, windows and jitters. A scheduled time is
// announced if and only if its start is within the window that is open at that time, which a model
// finds minute by minute. For an object without a uid it is announced if that is so for each
// jitter.
func TestWhatIsAnnouncedHappens(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(38, 3))
	announced, skipped := 0, 0
	for n := range 400 {
		p := planWith(t, func(o *mtsrev1.Eru) {
			o.UID = types.UID([]string{"", "a", "b", "c"}[n%4])
			o.Spec.Schedule = []string{"0 * * * *", "30 2,6 * * *", "15 */4 * * *", "0 6 * * 1-5"}[random.IntN(4)]
			o.Spec.JitterSeconds = []int32{0, 600, 3600, 14400}[random.IntN(4)]
			for range 1 + random.IntN(3) {
				o.Spec.Windows.Windows = append(o.Spec.Windows.Windows, modelv1.Window{
					Schedule: []string{"0 2 * * *", "0 5 * * *", "30 3 * * *", "0 */3 * * *"}[random.IntN(4)],
					Duration: metav1.Duration{Duration: []time.Duration{time.Hour, 90 * time.Minute, 3 * time.Hour}[random.IntN(3)]},
				})
			}
			o.Spec.SkipDates = []string{"2026-03-04"}
		})
		restarts := map[time.Time]bool{}
		end := midnight
		for _, at := range p.Restarts(midnight, 20) {
			restarts[at.UTC()], end = true, at
		}
		for slot := p.Next(midnight).Time; !slot.After(end); slot = p.Next(slot).Time {
			open := true
			for at := slot; open && !at.After(p.Start(slot)); at = at.Add(time.Minute) {
				open = p.windows.Open(at)
			}
			open = open && p.windows.Open(p.Start(slot))
			if restarts[slot.UTC()] != open {
				t.Fatalf("plan %d: %v, which starts at %v, is announced: %t", n, slot, p.Start(slot), !open)
			}
			if open {
				announced++
			} else {
				skipped++
			}
		}
	}
	if announced < 1000 || skipped < 1000 {
		t.Errorf("%d announced and %d skipped: too few of one", announced, skipped)
	}
}

func TestSkips(t *testing.T) {
	t.Parallel()
	clock := func(hour, minute int) time.Time { return midnight.Add(time.Duration(hour*60+minute) * time.Minute) }
	p := planWith(t, func(o *mtsrev1.Eru) {
		o.UID, o.Spec.Schedule, o.Spec.JitterSeconds = "", "0,55 2 * * *", 600
		o.Spec.Windows.Windows = []modelv1.Window{
			{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}},
			{Schedule: "5 3 * * *", Duration: metav1.Duration{Duration: time.Hour}},
		}
	})
	for _, test := range []struct {
		name            string
		slot, restarted time.Time
		want            string
	}{
		{"in its window", clock(2, 0), time.Time{}, ""},
		{"restarted before", clock(2, 0), clock(2, 0), ""},
		{"restarted after it", clock(2, 0), clock(2, 1), ReasonAlreadyRestarted},
		{"the next window opens during the jitter", clock(2, 55), time.Time{}, ReasonOutsideWindow},
		{"both", clock(2, 55), clock(4, 0), ReasonOutsideWindow},
	} {
		if got := p.Skips(test.slot, test.restarted); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
