// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

func TestProgress(t *testing.T) {
	condition := func(kind appsv1.DeploymentConditionType, value corev1.ConditionStatus, reason string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: kind, Status: value, Reason: reason, Message: "the Deployment's message"}}
		}
	}
	for _, test := range []struct {
		name   string
		change func(*appsv1.Deployment)
		want   status.Readiness
	}{
		{"complete", func(*appsv1.Deployment) {}, status.NewReady("2 of 2 pods are available")},
		{"no replicas", func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status = new(int32(0)), appsv1.DeploymentStatus{ObservedGeneration: 3}
		}, status.NewReady("0 of 0 pods are available")},
		{"not observed yet", func(d *appsv1.Deployment) { d.Generation = 4 },
			status.NewReconciling("Progressing", "waiting for the Deployment controller to observe generation 4")},
		{"not created yet", func(d *appsv1.Deployment) { *d = appsv1.Deployment{} },
			status.NewReconciling("Progressing", "waiting for the Deployment controller to observe generation 0")},
		{"an old template", func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 },
			status.NewReconciling("Progressing", "1 of 2 pods run the current template")},
		{"old pods left", func(d *appsv1.Deployment) { d.Status.Replicas = 3 },
			status.NewReconciling("Progressing", "waiting for the deletion of 1 of 3 pods, which run an old template")},
		{"a scale-down", func(d *appsv1.Deployment) {
			d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = 4, 4, 4
		},
			status.NewReconciling("Progressing", "waiting for the deletion of 2 of 4 pods")},
		{"not available", func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 },
			status.NewReconciling("Progressing", "0 of 2 pods are available")},
		{"a quota", condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate"),
			status.NewStalled("ReplicaFailure", "the Deployment's message")},
		{"a quota that was lifted", condition(appsv1.DeploymentReplicaFailure, corev1.ConditionFalse, "FailedCreate"),
			status.NewReady("2 of 2 pods are available")},
		{"a deadline", condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded"),
			status.NewStalled("ProgressDeadlineExceeded", "the Deployment's message")},
		{"progress", condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetAvailable"),
			status.NewReady("2 of 2 pods are available")},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}}
			d.Generation = 3
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}
			test.change(d)
			if got := Progress(d); got != test.want {
				t.Errorf("Progress = %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestAvailability(t *testing.T) {
	since := metav1.NewTime(time.Unix(1e9, 0))
	for name, test := range map[string]struct {
		conditions []appsv1.DeploymentCondition
		want       metav1.Condition
	}{
		"none yet": {nil, status.NotObserved("Deployment", 1)},
		"another one": {
			[]appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue}}, status.NotObserved("Deployment", 1),
		},
		"the Deployment's own": {
			[]appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable",
				Message: "Deployment does not have minimum availability.", LastTransitionTime: since,
			}},
			metav1.Condition{
				Status: metav1.ConditionFalse, Reason: "MinimumReplicasUnavailable",
				Message: "Deployment does not have minimum availability.", LastTransitionTime: since,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Status: appsv1.DeploymentStatus{Conditions: test.conditions}}
			if got := availability(d); got != test.want {
				t.Errorf("availability = %+v, want %+v", got, test.want)
			}
		})
	}
}

// A paused Deployment is not ready, whatever its pods are, and an Eru still sees its pods.
func TestProgressOfAPausedDeployment(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "models", Name: "web", Generation: 1}}
	d.Spec.Paused = true
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	got := unpaused(d)
	want := status.Readiness{Reason: "DeploymentPaused", Message: `Deployment "web" is paused, so its pods do not get a changed template: ` +
		`kubectl rollout resume deployment/web -n models`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !Progress(d).Ready {
		t.Error("its pods are not ready")
	}
}

func TestCounters(t *testing.T) {
	for _, count := range []*int32{nil, new(int32(0)), new(int32(7))} {
		into := &modelv1.WorkloadStatus{TerminatingReplicas: new(int32(9)), CollisionCount: new(int32(9)), Address: "old"}
		live := &appsv1.Deployment{Status: appsv1.DeploymentStatus{
			Replicas: 1, ReadyReplicas: 2, UpdatedReplicas: 3, AvailableReplicas: 4, UnavailableReplicas: 5, TerminatingReplicas: count, CollisionCount: count,
		}}
		s := NewState(boxed(""), nil, into, &status.Writer{})
		s.Pods.Live = live
		if _, err := (&Reconciler{}).Observe(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		want := &modelv1.WorkloadStatus{
			Replicas: 1, ReadyReplicas: 2, UpdatedReplicas: 3, AvailableReplicas: 4, UnavailableReplicas: 5, TerminatingReplicas: count, CollisionCount: count,
			Selector: "app.kubernetes.io/instance=box,app.kubernetes.io/name=modelbox",
		}
		if diff := cmp.Diff(want, into); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
