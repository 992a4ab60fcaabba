// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A RollingUpdate always has both steps, and a Recreate has none.
func TestStrategy(t *testing.T) {
	t.Parallel()
	number := func(n int32) *intstr.IntOrString { return new(intstr.FromInt32(n)) }
	percent := func(s string) *intstr.IntOrString { return new(intstr.FromString(s)) }
	rolling := func(maxSurge, maxUnavailable *intstr.IntOrString) appsv1.DeploymentStrategy {
		return appsv1.DeploymentStrategy{Type: "RollingUpdate", RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: maxSurge, MaxUnavailable: maxUnavailable,
		}}
	}
	recreate := appsv1.DeploymentStrategy{Type: "Recreate"}
	for name, test := range map[string]struct {
		strategy *appsv1.DeploymentStrategy
		rollout  *intstr.IntOrString
		want     appsv1.DeploymentStrategy
	}{
		"neither":                 {nil, nil, appsv1.DeploymentStrategy{}},
		"rollingUpdate":           {nil, percent("50%"), rolling(percent("50%"), percent("50%"))},
		"rollingUpdate as digits": {nil, percent("3"), rolling(number(3), number(3))},
		"the default":             {new(appsv1.DeploymentStrategy{}), percent("25%"), rolling(percent("25%"), percent("25%"))},
		"no steps":                {new(rolling(nil, nil)), percent("25%"), rolling(percent("25%"), percent("25%"))},
		"no rollingUpdate":        {&appsv1.DeploymentStrategy{Type: "RollingUpdate"}, nil, rolling(percent("25%"), percent("25%"))},
		"no surge":                {new(rolling(number(0), number(1))), percent("25%"), rolling(number(0), number(1))},
		"one step":                {new(rolling(nil, number(0))), nil, rolling(percent("25%"), number(0))},
		"the other step":          {new(rolling(percent("0%"), nil)), nil, rolling(percent("0%"), percent("25%"))},
		"no type":                 {&appsv1.DeploymentStrategy{RollingUpdate: rolling(number(2), number(0)).RollingUpdate}, nil, rolling(number(2), number(0))},
		"Recreate":                {&recreate, percent("25%"), recreate},
		"Recreate with a refused rollingUpdate": {
			&appsv1.DeploymentStrategy{Type: "Recreate", RollingUpdate: rolling(number(1), nil).RollingUpdate}, nil, recreate,
		},
	} {
		w := template(t, "")
		w.Strategy, w.Rollout = test.strategy, test.rollout
		if diff := cmp.Diff(test.want, w.strategy()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
