// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"testing"
	"time"
)

func TestRequestsAreReadFromTheMetric(t *testing.T) {
	var r Requests
	for _, line := range []string{
		`gets",priority_level="exempt"} 7`, `lists",priority_level="exempt"} 1`, `writes",priority_level="exempt"} 200`,
		`status",priority_level="exempt"} 1e+02`, `events",priority_level="exempt"} 3`, `watches",priority_level="exempt"} 12`,
		`other",priority_level="exempt"} 9`,
	} {
		if err := r.add(line); err != nil {
			t.Fatal(err)
		}
	}
	if r.Reads() != 8 || r.AllWrites() != 300 || r.Total() != 311 || r.Watches != 12 {
		t.Errorf("read %s", r)
	}
}

func TestCPUAndMemoryOfThisProcess(t *testing.T) {
	us := Processes{os.Getpid()}
	before, err := us.CPU()
	if err != nil {
		t.Fatal(err)
	}
	// The kernel counts in steps of 10 ms, and may give this process none of them for a while.
	after := before
	for start := time.Now(); err == nil && after <= before && time.Since(start) < 20*time.Second; {
		after, err = us.CPU()
	}
	if err != nil || after <= before || after-before > 10*time.Second {
		t.Errorf("from %s to %s of CPU time (%v)", before, after, err)
	}
	now, peak, err := Memory(os.Getpid())
	if err != nil || now < 1<<20 || peak < now {
		t.Errorf("%d bytes now, %d at most (%v)", now, peak, err)
	}
}
