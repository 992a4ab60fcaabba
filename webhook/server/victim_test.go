// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/netip"
	"testing"
	"time"
)

func TestClassOf(t *testing.T) {
	t.Parallel()
	now := time.Unix(1700000000, 0)
	for name, tc := range map[string]struct {
		phase    phase
		served   bool
		since    time.Duration
		crowding bool
		want     class
		age      time.Duration
	}{
		"new":                                     {unused, false, time.Millisecond, false, needed, 0},
		"new, of a source with too many":          {unused, false, time.Millisecond, true, neverServed, time.Minute},
		"unused":                                  {unused, false, time.Second, false, neverServed, time.Minute},
		"its first request is slow":               {reading, false, time.Second, false, neverServed, time.Minute},
		"its first request comes":                 {reading, false, time.Millisecond, false, needed, 0},
		"its first request is worked on":          {working, false, time.Second, true, needed, 0},
		"its first answer is not read":            {writing, false, time.Second, false, neverServed, time.Minute},
		"it was refused, and is idle":             {idle, false, time.Second, false, neverServed, time.Minute},
		"a later request comes":                   {reading, true, time.Millisecond, false, needed, 0},
		"a later request is slow":                 {reading, true, time.Second, false, slow, time.Second},
		"a later request is worked on":            {working, true, time.Second, true, needed, 0},
		"a later answer is not read":              {writing, true, time.Second, false, slow, time.Second},
		"idle for a moment":                       {idle, true, time.Millisecond, false, needed, 0},
		"idle for a moment, of a crowding source": {idle, true, time.Millisecond, true, longIdle, time.Millisecond},
		"idle":         {idle, true, time.Second, false, longIdle, time.Second},
		"disconnected": {disconnected, false, time.Second, true, needed, 0},
	} {
		c := &conn{accepted: now.Add(-time.Minute)}
		c.served.Store(tc.served)
		got, age := classOf(pack(tc.phase, now.Add(-tc.since)), c, tc.crowding, now)
		if got != tc.want || age != tc.age {
			t.Errorf("%s: class %d for %v, want %d for %v", name, got, age, tc.want, tc.age)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	type one struct {
		source int
		class  class
		age    time.Duration
	}
	for name, tc := range map[string]struct {
		all       []one
		protected int
		want      int // The index, -1 for none.
	}{
		"none":                               {nil, 0, -1},
		"all are needed":                     {[]one{{1, needed, 0}, {2, needed, 0}}, 0, -1},
		"never served before slow":           {[]one{{1, slow, 9}, {1, neverServed, 1}, {1, longIdle, 9}}, 0, 1},
		"slow before idle":                   {[]one{{1, longIdle, 9}, {1, slow, 1}}, 0, 1},
		"the oldest":                         {[]one{{1, neverServed, 1}, {1, neverServed, 3}, {1, neverServed, 2}}, 0, 1},
		"of the source with the most":        {[]one{{1, neverServed, 9}, {2, neverServed, 1}, {2, neverServed, 2}}, 0, 2},
		"the most of that class":             {[]one{{1, longIdle, 9}, {1, longIdle, 9}, {2, neverServed, 1}}, 0, 2},
		"not the protected one":              {[]one{{1, longIdle, 9}, {1, longIdle, 9}, {2, longIdle, 1}}, 1, 2},
		"the protected one if alone":         {[]one{{1, longIdle, 1}, {1, longIdle, 9}}, 1, 1},
		"the protected one's never served":   {[]one{{1, neverServed, 1}, {1, longIdle, 9}, {2, longIdle, 9}}, 1, 0},
		"another one's, if both have unused": {[]one{{1, neverServed, 9}, {1, neverServed, 9}, {2, neverServed, 1}}, 1, 2},
	} {
		var all []standing
		for _, o := range tc.all {
			all = append(all, standing{source: address(o.source), class: o.class, age: o.age})
		}
		protected := netip.Addr{}
		if tc.protected > 0 {
			protected = address(tc.protected)
		}
		got := -1
		if chosen := choose(all, protected); chosen != nil {
			for i := range all {
				if &all[i] == chosen {
					got = i
				}
			}
		}
		if got != tc.want {
			t.Errorf("%s: chose %d, want %d", name, got, tc.want)
		}
	}
}

// TestProtected: the source that completes the most requests keeps half of all connections.
func TestProtected(t *testing.T) {
	t.Parallel()
	type source struct {
		open   int
		served int64
	}
	for name, tc := range map[string]struct {
		from map[int]source
		want int
	}{
		"no request":              {map[int]source{1: {5, 0}, 2: {5, 0}}, 0},
		"the one with requests":   {map[int]source{1: {5, 1}, 2: {5, 0}}, 1},
		"the one with the most":   {map[int]source{1: {5, 1}, 2: {1, 7}}, 2},
		"not with more than half": {map[int]source{1: {6, 9}, 2: {4, 0}}, 0},
	} {
		cs := newConnections("test", 10)
		for n, s := range tc.from {
			cs.from[address(n)] = &tally{open: s.open}
			cs.from[address(n)].served.Store(s.served)
		}
		want := netip.Addr{}
		if tc.want > 0 {
			want = address(tc.want)
		}
		if got := cs.protected(); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
