// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"testing"
)

func TestResult(t *testing.T) {
	for _, tc := range []struct {
		name string
		row  Row
		want string
	}{
		{"within", Row{Limit: 2, Values: []float64{1, 2, 9}}, "PASS"},
		{"over", Row{Limit: 2, Values: []float64{3}}, "SHORT by 1.00 (50 %)"},
		{"over, with a unit", Row{Limit: 100, Unit: "ms", Values: []float64{150, 250}}, "SHORT by 100 ms (100 %)"},
		{"over nothing", Row{Limit: 0, Values: []float64{4}}, "SHORT by 4.00"},
		{"nothing", Row{Limit: 0, Values: []float64{0}}, "PASS"},
		{"at least", Row{Limit: 0.85, AtLeast: true, Values: []float64{0.9}}, "PASS"},
		{"too little", Row{Limit: 0.8, AtLeast: true, Values: []float64{0.4}}, "SHORT by 0.40 (50 %)"},
		{"not measured", Row{Limit: 1}, "NOT MEASURED"},
		{"no budget", Row{NoBudget: true, Values: []float64{4}}, ""},
		{"no budget, not measured", Row{NoBudget: true}, "NOT MEASURED"},
	} {
		if got := tc.row.Evaluate().Result; got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestLimitIsPrinted(t *testing.T) {
	for _, tc := range []struct {
		row  Row
		want string
	}{
		{Row{Limit: 100, Unit: "ms"}, "<= 100 ms"},
		{Row{Limit: 0.85, AtLeast: true}, ">= 0.85"},
		{Row{NoBudget: true}, "none"},
	} {
		for _, values := range [][]float64{nil, {1}} {
			tc.row.Values = values
			if got := tc.row.cells()[1]; got != tc.want {
				t.Errorf("%+v: %q, want %q", tc.row, got, tc.want)
			}
		}
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[99-i] = float64(i + 1)
	}
	for _, tc := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 2, 3}, 0.5, 2.5},
		{hundred, 0.99, 99},
		{[]float64{1, 2, 3}, 0.99, 3},
		{[]float64{7}, 0.5, 7},
	} {
		if got := Quantile(tc.values, tc.q); got != tc.want {
			t.Errorf("Quantile(%v, %v) = %v, want %v", tc.values, tc.q, got, tc.want)
		}
	}
	if !math.IsNaN(Quantile(nil, 0.5)) {
		t.Error("there is a quantile of nothing")
	}
}

func TestRatiosPairRounds(t *testing.T) {
	got := Ratios([]float64{2, 6, 9}, []float64{1, 2})
	if len(got) != 2 || got[0] != 2 || got[1] != 3 {
		t.Errorf("got %v, want [2 3]", got)
	}
}
