// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedules

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/cron"
)

// TestDue compares Due with a model that goes through the scheduled times one by one.
func TestDue(t *testing.T) {
	t.Parallel()
	random, found, none := rand.New(rand.NewPCG(37, 2)), 0, 0
	for range 3000 {
		var times Times
		for range 1 + random.IntN(3) {
			expression := []string{"*/5 * * * *", "0 * * * *", "30 2 * * *", "0 3 * * 1", "15,45 1-4 * * *"}[random.IntN(5)]
			zone := []string{"Etc/UTC", "Australia/Lord_Howe", "Africa/Casablanca"}[random.IntN(3)]
			of, err := cron.ParseIn(expression, zone)
			if err != nil {
				t.Fatal(err)
			}
			times = append(times, of)
		}
		delay := func(time.Time) time.Duration { return 59 * time.Second }
		if random.IntN(2) == 0 {
			delay = nil
		}
		open := time.Date(2026, 3, 22, 0, 0, 0, 0, time.UTC).Add(time.Duration(random.IntN(86400)) * time.Second)
		now := open.Add(time.Duration(random.IntN(86400)-20000) * time.Second)
		var due, superseded time.Time
		for at := times.Next(open.Add(-time.Second)); !at.IsZero(); at = times.Next(at.Time) {
			start := at.Time
			if delay != nil {
				start = start.Add(delay(at.Time))
			}
			if start.After(now) {
				break
			}
			due, superseded = at.Time, due
		}
		got, before := times.Due(open, now, delay)
		if !got.Equal(due) || !before.Equal(superseded) {
			t.Fatalf("%v from %v, at %v: %v and %v, want %v and %v", times, open, now, got, before, due, superseded)
		}
		if due.IsZero() {
			none++
		} else {
			found++
		}
	}
	if found < 1000 || none < 500 {
		t.Errorf("%d with a time and %d without: too few of one", found, none)
	}
}
