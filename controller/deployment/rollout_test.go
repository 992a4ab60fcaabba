// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/controller/rollout"
)

func TestObserveRollout(t *testing.T) {
	completed := metav1.NewTime(time.Unix(1e9, 0))
	progressing := func(reason string) []appsv1.DeploymentCondition {
		return []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Reason: reason, LastUpdateTime: completed}}
	}
	for name, test := range map[string]struct {
		status   appsv1.DeploymentStatus
		complete bool
		want     rollout.Observation
	}{
		"the cluster has not acted on it": {status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 1}},
		"a new ReplicaSet without a pod": {
			status: appsv1.DeploymentStatus{ObservedGeneration: 2, Conditions: progressing("NewReplicaSetCreated")},
			want:   rollout.Observation{InProgress: true},
		},
		"new pods that are not available": {
			status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, Conditions: progressing("ReplicaSetUpdated")},
			want:   rollout.Observation{InProgress: true},
		},
		"new pods that are not available before the deadline": {
			status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, Conditions: progressing("ProgressDeadlineExceeded")},
			want:   rollout.Observation{InProgress: true},
		},
		"a rollback, whose condition follows later": {
			status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, Conditions: progressing("NewReplicaSetAvailable")},
			want:   rollout.Observation{InProgress: true, CompletedAt: completed.Time},
		},
		"a Deployment without a deadline": {
			status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1},
			want:   rollout.Observation{InProgress: true},
		},
		"complete": {
			status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, Conditions: progressing("NewReplicaSetAvailable")}, complete: true,
			want: rollout.Observation{Complete: true, CompletedAt: completed.Time},
		},
		"scaled": {
			status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 5, UpdatedReplicas: 5, AvailableReplicas: 2, Conditions: progressing("NewReplicaSetAvailable")},
			want:   rollout.Observation{CompletedAt: completed.Time},
		},
		"paused by another client": {
			status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, Conditions: progressing("DeploymentPaused")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &appsv1.Deployment{Status: test.status}
			d.UID, d.Generation, d.Annotations = "d", 2, map[string]string{annotationRevision: "7"}
			test.want.Child, test.want.Revision, test.want.New = "d", "7", true
			if got := observeRollout(d, test.complete, nil); got != test.want {
				t.Errorf("observation %+v, want %+v", got, test.want)
			}
		})
	}
}
