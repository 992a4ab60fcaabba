// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/modelbox-operator/modelbox-operator/cli/runs"
	"github.com/modelbox-operator/modelbox-operator/cron"
)

func TestRuns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		schedule, zone, after string
		want                  string
	}{
		"no change": {"30 2 * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", `
2026-01-01T02:30:00+01:00
2026-01-02T02:30:00+01:00
2026-01-03T02:30:00+01:00`},
		"a time that does not exist": {"30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", `
2026-03-28T02:30:00+01:00
2026-03-29T03:00:00+02:00 clocks go forward 1h at 2026-03-29 02:00; 02:30 does not exist on this day, so it runs right after the change
2026-03-30T02:30:00+02:00`},
		"a time that comes twice": {"30 2 * * *", "Europe/Berlin", "2026-10-24T22:00:00Z", `
2026-10-25T02:30:00+02:00 02:30 comes twice on this day, and it runs the first time only
2026-10-26T02:30:00+01:00 clocks go back 1h at 2026-10-25 03:00
2026-10-27T02:30:00+01:00`},
		"a change between runs": {"0 12 * * *", "America/New_York", "2026-03-07T12:00:00Z", `
2026-03-07T12:00:00-05:00
2026-03-08T12:00:00-04:00 clocks go forward 1h at 2026-03-08 02:00
2026-03-09T12:00:00-04:00`},
		"each half hour, forward": {"*/30 * * * *", "Europe/Berlin", "2026-03-29T00:15:00Z", `
2026-03-29T01:30:00+01:00
2026-03-29T03:00:00+02:00 clocks go forward 1h at 2026-03-29 02:00
2026-03-29T03:30:00+02:00`},
		"each half hour, back": {"*/30 * * * *", "Europe/Berlin", "2026-10-25T00:15:00Z", `
2026-10-25T02:30:00+02:00 02:30 comes twice on this day, and this is the first of two runs
2026-10-25T02:00:00+01:00 clocks go back 1h at 2026-10-25 03:00; 02:00 comes twice on this day, and this is the second of two runs
2026-10-25T02:30:00+01:00 02:30 comes twice on this day, and this is the second of two runs`},
		"half an hour": {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", `
2026-10-04T02:30:00+11:00 clocks go forward 30m at 2026-10-04 02:00; 02:15 does not exist on this day, so it runs right after the change
2026-10-05T02:15:00+11:00
2026-10-06T02:15:00+11:00`},
		"the end of the gap": {"0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", `
2026-03-29T03:00:00+02:00 clocks go forward 1h at 2026-03-29 02:00
2026-03-30T03:00:00+02:00
2026-03-31T03:00:00+02:00`},
		"years apart": {"0 0 29 2 *", "Europe/Berlin", "2026-01-01T00:00:00Z", `
2028-02-29T00:00:00+01:00 clocks go forward 1h at 2026-03-29 02:00; clocks go back 1h at 2026-10-25 03:00; clocks go forward 1h at 2027-03-28 02:00; clocks go back 1h at 2027-10-31 03:00`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schedule, err := cron.Parse(tc.schedule)
			if err != nil {
				t.Fatal(err)
			}
			zone, err := cron.LoadLocation(tc.zone)
			if err != nil {
				t.Fatal(err)
			}
			after, err := time.Parse(time.RFC3339, tc.after)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Split(strings.TrimSpace(tc.want), "\n")
			var got []string
			for _, run := range runs.Next(schedule, zone, after, len(want)) {
				got = append(got, strings.TrimSpace(run.Time.Format(time.RFC3339)+" "+run.Note))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A schedule may have no more runs than can be listed.
func TestRunsOfNone(t *testing.T) {
	t.Parallel()
	schedule, err := cron.Parse("0 0 * * *")
	if err != nil {
		t.Fatal(err)
	}
	if got := runs.Next(schedule, time.UTC, time.Now(), 0); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
