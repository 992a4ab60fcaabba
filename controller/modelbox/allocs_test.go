// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package modelbox

import "testing"

// TestAllocations checks that a reconcile does not allocate more than today. Most
// allocations are the copies that the cache returns. Raise a ceiling only with a reason,
// and lower it when the figure falls. (The race detector allocates too, so the test does
// not run with it.)
func TestAllocations(t *testing.T) {
	s, once := atRest(t)
	for name, tc := range map[string]struct {
		do      func()
		ceiling float64
	}{
		"reconcile of an unchanged object": {once, 223},
		"children":                         {func() { build(t, s.box) }, 30},
	} {
		if got := testing.AllocsPerRun(200, tc.do); got > tc.ceiling {
			t.Errorf("%s: %v allocations, want at most %v", name, got, tc.ceiling)
		}
	}
}
