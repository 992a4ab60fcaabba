// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFree(t *testing.T) {
	for name, each := range map[string]struct {
		now  unix.Statfs_t
		want int64
	}{
		"ext4":                    {unix.Statfs_t{Blocks: 100, Bavail: 10, Bsize: 4096, Frsize: 4096}, 40960},
		"blocks are larger":       {unix.Statfs_t{Blocks: 100, Bavail: 10, Bsize: 1 << 20, Frsize: 4096}, 40960},
		"blocks are smaller":      {unix.Statfs_t{Blocks: 100, Bavail: 10, Bsize: 512, Frsize: 1 << 20}, 10 << 20},
		"without a unit":          {unix.Statfs_t{Blocks: 100, Bavail: 10, Bsize: 512}, 5120},
		"full":                    {unix.Statfs_t{Blocks: 100, Bsize: 512, Frsize: 512}, 0},
		"a bucket that is a disk": {unix.Statfs_t{Bsize: 4096}, math.MaxInt64},
	} {
		if got := free(each.now); got != each.want {
			t.Errorf("%s: %d, want %d", name, got, each.want)
		}
	}
}
