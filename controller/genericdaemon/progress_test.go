// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

func TestProgress(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*appsv1.DaemonSet)
		want   string
		ready  bool
		text   string
	}{
		{name: "complete", change: func(*appsv1.DaemonSet) {}, want: "Ready", ready: true, text: "3 of 3 nodes"},
		{name: "not observed yet", change: func(s *appsv1.DaemonSet) { s.Generation = 3 }, want: "Progressing", text: "has not acted"},
		{name: "not created yet", change: func(s *appsv1.DaemonSet) { *s = appsv1.DaemonSet{} }, want: "Progressing", text: "has not acted"},
		{name: "no node", change: func(s *appsv1.DaemonSet) { s.Status = appsv1.DaemonSetStatus{ObservedGeneration: 2} },
			want: "NoMatchingNodes", text: `the label "logs"`},
		{name: "no matching node any more, and a pod left", change: func(s *appsv1.DaemonSet) {
			s.Status = appsv1.DaemonSetStatus{ObservedGeneration: 2, NumberMisscheduled: 1}
		}, want: "Progressing", text: "1 nodes run the daemon and should not"},
		{name: "an old template", change: func(s *appsv1.DaemonSet) { s.Status.UpdatedNumberScheduled = 1 }, want: "Progressing", text: "1 of 3 nodes run"},
		{name: "not available", change: func(s *appsv1.DaemonSet) { s.Status.NumberAvailable = 2 }, want: "Progressing", text: "on 2 of 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			set := &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{
				ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 3,
			}}
			set.Generation = 2
			test.change(set)
			readiness := progress(set, "logs")
			if readiness.Reason != test.want || readiness.Ready != test.ready || !strings.Contains(readiness.Message, test.text) {
				t.Errorf("readiness is %+v, want reason %s, ready %t and a message with %q", readiness, test.want, test.ready, test.text)
			}
		})
	}
}
