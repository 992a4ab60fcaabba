// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
)

func TestWarn(t *testing.T) {
	for _, test := range []struct {
		name   string
		now    string
		change func(*mtsrev1.EruSpec)
		want   []string
	}{
		{
			"the next three runs, in the object's zone", "2026-11-21T20:00:00Z",
			func(s *mtsrev1.EruSpec) { s.Enabled, s.TimeZone = true, "Asia/Shanghai" },
			[]string{"spec.schedule: the next restarts are at 2026-11-23T00:00:00+08:00, 2026-11-24T00:00:00+08:00, 2026-11-25T00:00:00+08:00"},
		},
		{
			"across a change of the clocks", "2026-03-07T10:00:00Z",
			func(s *mtsrev1.EruSpec) { s.Enabled, s.Schedule, s.TimeZone = true, "30 2 * * *", "America/New_York" },
			[]string{"spec.schedule: the next restarts are at 2026-03-08T03:00:00-04:00, 2026-03-09T02:30:00-04:00, 2026-03-10T02:30:00-04:00"},
		},
		{
			"disabled", "2026-11-21T00:00:00Z",
			func(s *mtsrev1.EruSpec) { s.TimeZone = "Asia/Kolkata" },
			[]string{"spec.enabled is false: it would run at 2026-11-22T00:00:00+05:30, 2026-11-23T00:00:00+05:30, 2026-11-24T00:00:00+05:30"},
		},
		{
			"a deadline that a change of leader can miss", "2026-11-21T00:00:00Z",
			func(s *mtsrev1.EruSpec) { s.Enabled, s.StartingDeadlineSeconds = true, new(int64(9)) },
			[]string{
				"spec.schedule: the next restarts are at 2026-11-22T00:00:00Z, 2026-11-23T00:00:00Z, 2026-11-24T00:00:00Z",
				"spec.startingDeadlineSeconds: less than 10 s, so a change of the controller's leader can miss a restart",
			},
		},
		{"the last days of the calendar", "9999-12-30T12:00:00Z", func(s *mtsrev1.EruSpec) { s.Enabled = true },
			[]string{"spec.schedule: the next restarts are at 9999-12-31T00:00:00Z"}},
		{
			"the deprecated field", "2026-11-21T00:00:00Z",
			func(s *mtsrev1.EruSpec) { s.DeprecatedDeploymentName = "web" },
			[]string{
				"spec.deploymentname: deprecated; use spec.deploymentName instead",
				"spec.enabled is false: it would run at 2026-11-22T00:00:00Z, 2026-11-23T00:00:00Z, 2026-11-24T00:00:00Z",
			},
		},
		{"an invalid schedule", "2026-11-21T00:00:00Z", func(s *mtsrev1.EruSpec) { s.Schedule = "*" }, nil},
		{"an unknown time zone", "2026-11-21T00:00:00Z", func(s *mtsrev1.EruSpec) { s.TimeZone = "Mars" }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			now, err := time.Parse(time.RFC3339, test.now)
			if err != nil {
				t.Fatal(err)
			}
			obj := named("web", complete())
			test.change(&obj.Spec)
			got := Warn(obj, now)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			for _, warning := range got {
				if len(warning) > 120 {
					t.Errorf("%d characters, the API server promises 120: %s", len(warning), warning)
				}
			}
		})
	}
}
