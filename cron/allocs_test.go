// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package cron

import "testing"

// TestAllocations checks that Next and Prev allocate no memory for any distance, and that
// Parse and LoadLocation do not allocate more than today.
func TestAllocations(t *testing.T) {
	for _, bm := range benchmarked {
		s, loc, at := mustParse(t, bm.expr), mustLoad(t, bm.zone), instant(t, bm.at)
		if got := testing.AllocsPerRun(100, func() { s.Next(at, loc) }); got > 0 {
			t.Errorf("Next of %s: %v allocations, want none", bm.name, got)
		}
		if got := testing.AllocsPerRun(100, func() { s.Prev(at, loc) }); got > 0 {
			t.Errorf("Prev of %s: %v allocations, want none", bm.name, got)
		}
	}
	if got := testing.AllocsPerRun(100, func() { mustParse(t, "0,10-30/5,45 8-18 1,15 jan-jun,dec mon-fri") }); got > 0 {
		t.Errorf("Parse: %v allocations, want none", got)
	}
	if got := testing.AllocsPerRun(100, func() { mustLoad(t, "America/New_York") }); got > 13 {
		t.Errorf("LoadLocation: %v allocations, want at most 13", got)
	}
}
