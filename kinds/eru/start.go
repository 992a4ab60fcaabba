// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/modelbox-operator/modelbox-operator/cron"
)

// Start returns when the restart of a scheduled time is written: that time plus the jitter of the object, which is always
// the same for one object and time, and spread evenly over Spread.
func Start(times cron.Times, uid types.UID, jitter time.Duration, slot time.Time) time.Time {
	most := Spread(times, jitter, slot)
	if most <= 0 {
		return slot
	}
	sum := fnv.New64a()
	_, _ = sum.Write(binary.BigEndian.AppendUint64([]byte(uid), uint64(slot.Unix())))    //nolint:gosec // G115: every bit counts. A hash never errs.
	return slot.Add(time.Duration(sum.Sum64()%uint64(most/time.Second+1)) * time.Second) //nolint:gosec // G115: most is positive, and the rest below it.
}

// Spread returns the longest time from a scheduled time to its start, in whole seconds. It ends before the next scheduled time, so
// that the order is kept, however dense the schedule is.
func Spread(times cron.Times, jitter time.Duration, slot time.Time) time.Duration {
	if next, ok := times.Next(slot, times.Zone); ok && jitter > 0 {
		return min(jitter, next.Sub(slot)-time.Second)
	}
	return jitter
}
