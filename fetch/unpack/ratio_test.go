// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package unpack

import "testing"

func TestTheRatio(t *testing.T) {
	for _, each := range []struct {
		name           string
		limits         Limits
		archive, bytes int64
		allowed        bool
	}{
		{"100 MiB are always allowed", Limits{MaxRatio: 1}, 1, 100 << 20, true},
		{"one byte more", Limits{MaxRatio: 1}, 1, 100<<20 + 1, false},
		{"just the ratio", Limits{MaxRatio: 1000}, 1 << 20, 1000 << 20, true},
		{"more than the ratio", Limits{MaxRatio: 1000}, 1 << 20, 1001 << 20, false},
		{"another bound", Limits{MaxRatio: 1, RatioFrom: 10}, 1, 11, false},
		{"below another bound", Limits{MaxRatio: 1, RatioFrom: 10}, 1, 10, true},
		{"no overflow", Limits{MaxRatio: 1 << 40}, 1 << 40, 1 << 62, true},
	} {
		w := &writer{limits: each.limits, archive: each.archive}
		if err := w.decompress(each.bytes); (err == nil) != each.allowed {
			t.Errorf("%s: %v", each.name, err)
		}
	}
}
