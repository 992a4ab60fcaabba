// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/modelbox-operator/modelbox-operator/controller/rollout"
)

func TestObserveRollout(t *testing.T) {
	for name, test := range map[string]struct {
		status appsv1.DaemonSetStatus
		want   rollout.Observation
	}{
		"the cluster has not acted on it": {status: appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 2, CurrentNumberScheduled: 2}},
		"old pods": {
			appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 1, NumberAvailable: 2},
			rollout.Observation{InProgress: true},
		},
		"a node that has joined": {
			appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 2},
			rollout.Observation{},
		},
		"a pod that has restarted": {
			appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 1},
			rollout.Observation{},
		},
		"complete": {
			appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 2},
			rollout.Observation{Complete: true},
		},
		"no node": {appsv1.DaemonSetStatus{ObservedGeneration: 2}, rollout.Observation{Complete: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := &appsv1.DaemonSet{Status: test.status}
			set.UID, set.Generation, set.Annotations = "s", 2, map[string]string{appsv1.DeprecatedTemplateGeneration: "7"}
			test.want.Child, test.want.Revision, test.want.New = "s", "7", true
			if got := observeRollout(set, nil); got != test.want {
				t.Errorf("observation %+v, want %+v", got, test.want)
			}
		})
	}
}
