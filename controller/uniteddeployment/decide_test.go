// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
)

func TestDecide(t *testing.T) {
	now := metav1.Now()
	target := func(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}}
		d.Spec.Replicas = new(int32(2))
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, AvailableReplicas: 2}
		for _, c := range change {
			c(d)
		}
		return d
	}
	for _, test := range []struct {
		name   string
		target *appsv1.Deployment
		holder string
		want   string // empty: it writes the Deployment
		ready  bool
	}{
		{name: "missing", want: "TargetNotFound"},
		{name: "held by another", target: target(), holder: "another", want: "Conflict"},
		{name: "held by another, with other replicas", target: target(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(9)) }), holder: "x", want: "Conflict"},
		{name: "being deleted", target: target(func(d *appsv1.Deployment) { d.DeletionTimestamp = &now }), want: "WaitingForDeletion"},
		{name: "other replicas", target: target(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) })},
		{name: "unset replicas are 1", target: target(func(d *appsv1.Deployment) { d.Spec.Replicas = nil })},
		{name: "not observed yet", target: target(func(d *appsv1.Deployment) { d.Generation = 3 }), want: "Progressing"},
		{name: "too many pods", target: target(func(d *appsv1.Deployment) { d.Status.Replicas = 3 }), want: "Progressing"},
		{name: "too few pods", target: target(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 }), want: "Progressing"},
		{name: "as desired", target: target(), want: "Ready", ready: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ud := &extensionv1.UnitedDeployment{Spec: extensionv1.UnitedDeploymentSpec{DeploymentName: "web", Replicas: new(int32(2))}}
			readiness := decide(ud, nil, test.target, test.holder)
			if readiness == nil {
				if test.want != "" {
					t.Errorf("it writes, want %s", test.want)
				}
				return
			}
			if readiness.Reason != test.want || readiness.Ready != test.ready {
				t.Errorf("readiness is %+v, want reason %q and ready %t", readiness, test.want, test.ready)
			}
		})
	}
}
