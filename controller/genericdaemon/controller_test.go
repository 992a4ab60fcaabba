// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		{name: "not observed yet", change: func(s *appsv1.DaemonSet) { s.Generation = 3 }, want: "Progressing", text: "waiting for the DaemonSet controller to observe"},
		{name: "not created yet", change: func(s *appsv1.DaemonSet) { *s = appsv1.DaemonSet{} }, want: "Progressing", text: "waiting for the DaemonSet controller to observe"},
		{name: "no node", change: func(s *appsv1.DaemonSet) { s.Status = appsv1.DaemonSetStatus{ObservedGeneration: 2} },
			want: "NoMatchingNodes", text: `the label "logs"`},
		{name: "no matching node any more, and a pod left", change: func(s *appsv1.DaemonSet) {
			s.Status = appsv1.DaemonSetStatus{ObservedGeneration: 2, NumberMisscheduled: 1}
		}, want: "Progressing", text: "1 pods run on nodes that no longer match"},
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

func TestAvailability(t *testing.T) {
	for name, test := range map[string]struct {
		observed appsv1.DaemonSetStatus
		status   metav1.ConditionStatus
		reason   string
	}{
		"everywhere":      {appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 2, NumberAvailable: 2}, metav1.ConditionTrue, "DaemonAvailable"},
		"not everywhere":  {appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 2, NumberAvailable: 1}, metav1.ConditionFalse, "DaemonUnavailable"},
		"an old template": {appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 2, NumberAvailable: 2, UpdatedNumberScheduled: 1}, metav1.ConditionTrue, "DaemonAvailable"},
		"no node":         {appsv1.DaemonSetStatus{ObservedGeneration: 1}, metav1.ConditionFalse, "NoMatchingNodes"},
		"no status yet":   {appsv1.DaemonSetStatus{}, metav1.ConditionUnknown, "Progressing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := availability(&appsv1.DaemonSet{Status: test.observed}, "logs")
			if got.Status != test.status || got.Reason != test.reason || got.Message == "" {
				t.Errorf("availability is %+v, want %s %s", got, test.status, test.reason)
			}
		})
	}
}
