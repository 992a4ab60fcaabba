// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

func numbered(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: fmt.Sprint("eru-", i)}
}

// series returns how many Erus have a series.
func series(s *schedule) int {
	values := make(chan prometheus.Metric, 2*maxSeries)
	s.gauge.Collect(values)
	return len(values)
}

// 5,000 Erus have 1,000 series, and the same ones whichever of them is due next.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	s, now := newSchedule(), time.Unix(1_000_000, 0)
	for round := range 3 {
		for i := range 5 * maxSeries {
			s.set(numbered(i), now.Add(time.Duration((i+round*1111)%5000)*time.Second))
		}
		if count := series(s); count != maxSeries {
			t.Errorf("there are %d series, want %d", count, maxSeries)
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
	s, now := newSchedule(), time.Unix(1_000_000, 0)
	for i := range maxSeries {
		s.set(numbered(i), now.Add(time.Hour))
	}
	s.set(numbered(maxSeries), now)
	expect := func(want time.Time) {
		t.Helper()
		if got := s.earliest(); got != float64(want.Unix()) {
			t.Errorf("the earliest time is %v, want %d", got, want.Unix())
		}
	}
	expect(now)
	s.remove(numbered(maxSeries))
	expect(now.Add(time.Hour))
}

func TestASeriesIsFreeAfterItsEru(t *testing.T) {
	t.Parallel()
	s, now := newSchedule(), time.Unix(1_000_000, 0)
	for i := range maxSeries + 1 {
		s.set(numbered(i), now)
	}
	s.remove(numbered(7))
	s.set(numbered(maxSeries), now)
	if !s.own.Has(numbered(maxSeries)) || series(s) != maxSeries {
		t.Error("the Eru that waited has no series")
	}
	for i := range maxSeries + 1 {
		s.remove(numbered(i))
	}
	if count := series(s); count != 0 || !math.IsNaN(s.earliest()) {
		t.Errorf("%d series are left without Erus, and the earliest time is %v", count, s.earliest())
	}
}
