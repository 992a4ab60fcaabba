// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

const ownSeries, earliestSeries = "modelbox_eru_next_restart_timestamp_seconds", "modelbox_eru_earliest_restart_timestamp_seconds"

func numbered(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: fmt.Sprint("eru-", i)}
}

// series returns how many series each metric of a schedule has, and the value of the last.
// The registry refuses series that are not as the schedule describes them.
func series(t *testing.T, s *schedule) (count map[string]int, last map[string]float64) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	count, last = map[string]int{}, map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			count[family.GetName()]++
			last[family.GetName()] = metric.GetGauge().GetValue()
		}
	}
	return count, last
}

// 5,000 Erus have 1,000 series, and the same ones whichever of them is due next.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	s, now := &schedule{}, time.Unix(1_000_000, 0)
	for round := range 3 {
		for i := range 5 * maxSeries {
			s.set(numbered(i), now.Add(time.Duration((i+round*1111)%5000)*time.Second))
		}
		if count, _ := series(t, s); count[ownSeries] != maxSeries || count[earliestSeries] != 1 {
			t.Errorf("there are %v series, want %d and 1", count, maxSeries)
		}
		for i := range maxSeries {
			if !s.own.Has(numbered(i)) {
				t.Fatalf("Eru %d has lost its series", i)
			}
		}
	}
}

// An Eru without a series of its own is in the earliest time.
func TestEarliestIsOfAllErus(t *testing.T) {
	t.Parallel()
	s, now := &schedule{}, time.Unix(1_000_000, 0)
	for i := range maxSeries {
		s.set(numbered(i), now.Add(time.Hour))
	}
	s.set(numbered(maxSeries), now)
	expect := func(want time.Time) {
		t.Helper()
		if _, last := series(t, s); last[earliestSeries] != float64(want.Unix()) {
			t.Errorf("the earliest time is %v, want %d", last[earliestSeries], want.Unix())
		}
	}
	expect(now)
	s.remove(numbered(maxSeries))
	expect(now.Add(time.Hour))
}

func TestASeriesIsFreeAfterItsEru(t *testing.T) {
	t.Parallel()
	s, now := &schedule{}, time.Unix(1_000_000, 0)
	for i := range maxSeries + 1 {
		s.set(numbered(i), now)
	}
	s.remove(numbered(7))
	s.set(numbered(maxSeries), now)
	if count, _ := series(t, s); !s.own.Has(numbered(maxSeries)) || count[ownSeries] != maxSeries {
		t.Error("the Eru that waited has no series")
	}
	for i := range maxSeries + 1 {
		s.remove(numbered(i))
	}
	if count, _ := series(t, s); len(count) != 0 {
		t.Errorf("%v series are left without Erus: the earliest time of none would be overdue", count)
	}
}
