// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// What was stored as empty while the webhook was away makes the children that it makes
// when it is left out.
func TestEmptyIsNotSet(t *testing.T) {
	t.Parallel()
	without, with := template(t, ""), template(t, "")
	without.Ports = []modelv1.Port{{Port: 80}}
	with.Ports = []modelv1.Port{{Port: 80, TargetPort: new(intstr.FromString("")), AppProtocol: new("")}}
	with.Rollout = new(intstr.FromString(""))
	if diff := cmp.Diff(without.Service(), with.Service()); diff != "" {
		t.Errorf("the Service (-without +with):\n%s", diff)
	}
	want, err := without.Deployment()
	if err != nil {
		t.Fatal(err)
	}
	got, err := with.Deployment()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("the Deployment (-without +with):\n%s%v", diff, err)
	}
}

// A step that was stored before it was bounded is cut, and the children are built.
func TestStepsAreCut(t *testing.T) {
	t.Parallel()
	w := template(t, "")
	w.Rollout = new(intstr.FromInt32(1<<31 - 1))
	deployment, err := w.Deployment()
	if err != nil {
		t.Fatal(err)
	}
	step := intstr.FromInt32(1<<30 - 1)
	want := &appsv1.RollingUpdateDeployment{MaxSurge: &step, MaxUnavailable: &step}
	if diff := cmp.Diff(want, deployment.Spec.Strategy.RollingUpdate); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
