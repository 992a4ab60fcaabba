// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	internal "k8s.io/kubernetes/pkg/apis/autoscaling"
	kubernetesv2 "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
	kubernetes "k8s.io/kubernetes/pkg/apis/autoscaling/validation"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

func behaves(b *autoscalingv2.HorizontalPodAutoscalerBehavior) func(*modelv1.Autoscaling) {
	return func(a *modelv1.Autoscaling) { a.Behavior = b }
}

// randomRules returns the rules of a direction, most of whose fields are valid.
func randomRules(rnd *rand.Rand) *autoscalingv2.HPAScalingRules {
	number := func(of ...int32) int32 { return of[rnd.IntN(len(of))] }
	r := &autoscalingv2.HPAScalingRules{}
	switch rnd.IntN(6) {
	case 0:
		return nil
	case 1:
		r.Policies = []autoscalingv2.HPAScalingPolicy{}
	}
	if rnd.IntN(2) == 0 {
		r.StabilizationWindowSeconds = new(number(0, 1, 300, 3600, 3600, 3601, -1))
	}
	if rnd.IntN(2) == 0 {
		selects := []autoscalingv2.ScalingPolicySelect{"Max", "Min", "Disabled", "Max", "Min", "", "max"}
		r.SelectPolicy = new(selects[rnd.IntN(len(selects))])
	}
	if rnd.IntN(3) == 0 {
		tolerances := []string{"0", "0.05", "50m", "3", "-1m"}
		r.Tolerance = new(resource.MustParse(tolerances[rnd.IntN(len(tolerances))]))
	}
	for range rnd.IntN(3) {
		types := []autoscalingv2.HPAScalingPolicyType{"Pods", "Percent", "Pods", "Percent", "Pods", "Percent", "Pods", "Percent", "", "pods"}
		r.Policies = append(r.Policies, autoscalingv2.HPAScalingPolicy{
			Type: types[rnd.IntN(len(types))], Value: number(1, 4, 100, 200, math.MaxInt32, 1, 1, 1, 0, -1), PeriodSeconds: number(1, 15, 60, 1800, 1800, 1, 1, 1, 1801, 0, -1),
		})
	}
	return r
}

// TestBehaviorIsJudgedAsByKubernetes compares the rules of behavior with those of the API server,
// after its defaults, which the programs do not contain.
func TestBehaviorIsJudgedAsByKubernetes(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(40, 4))
	options := kubernetes.HorizontalPodAutoscalerSpecValidationOptions{MinReplicasLowerBound: 1}
	var valid, invalid int
	for range 20000 {
		o := autoscaled(behaves(&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: randomRules(rnd), ScaleDown: randomRules(rnd)}))
		child := horizontalPodAutoscaler(o).(*autoscalingv2.HorizontalPodAutoscaler)
		kubernetesv2.SetDefaults_HorizontalPodAutoscaler(child)
		stored := &internal.HorizontalPodAutoscaler{}
		if err := kubernetesv2.Convert_v2_HorizontalPodAutoscaler_To_autoscaling_HorizontalPodAutoscaler(child, stored, nil); err != nil {
			t.Fatal(err)
		}
		theirs := map[string]bool{}
		for _, err := range kubernetes.ValidateHorizontalPodAutoscaler(stored, options) {
			theirs[err.Field] = true
		}
		ours := map[string]bool{}
		for _, err := range behavior(field.NewPath("spec", "behavior"), o.Autoscaling.Behavior) {
			ours[err.Field] = true
		}
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Fatalf("%+v (-Kubernetes +here):\n%s", o.Autoscaling.Behavior, diff)
		}
		if len(ours) == 0 {
			valid++
		} else {
			invalid++
		}
	}
	if valid < 1000 || invalid < 1000 {
		t.Errorf("%d valid and %d invalid ones", valid, invalid)
	}
}

// TestBehaviorOfKEDA: a ScaledObject hands the behavior on, and has its own seconds for the last
// replica. Nothing is added to what the object has.
func TestBehaviorOfKEDA(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*modelv1.Autoscaling)
		want   map[string]any
	}{
		"neither": {func(*modelv1.Autoscaling) {}, map[string]any{}},
		"none":    {behaves(&autoscalingv2.HorizontalPodAutoscalerBehavior{}), map[string]any{"advanced": map[string]any{"horizontalPodAutoscalerConfig": map[string]any{"behavior": map[string]any{}}}}},
		"an empty selectPolicy": {
			behaves(&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{
				SelectPolicy: new(autoscalingv2.ScalingPolicySelect("")), StabilizationWindowSeconds: new(int32(600)), Tolerance: new(resource.MustParse("0.05")),
				Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 60}},
			}}),
			map[string]any{"advanced": map[string]any{"horizontalPodAutoscalerConfig": map[string]any{"behavior": map[string]any{"scaleDown": map[string]any{
				"stabilizationWindowSeconds": int64(600), "tolerance": "50m",
				"policies": []any{map[string]any{"type": "Pods", "value": int64(1), "periodSeconds": int64(60)}},
			}}}}},
		},
		"the last replica": {func(a *modelv1.Autoscaling) {
			a.MinReplicas, a.Prometheus.CooldownSeconds = new(int32(0)), new(int32(1800))
		}, map[string]any{"cooldownPeriod": int64(1800)}},
		"idle": {func(a *modelv1.Autoscaling) { a.Prometheus.IdleReplicas = new(int32(0)) }, map[string]any{"idleReplicaCount": int64(0)}},
	} {
		o := autoscaled(func(a *modelv1.Autoscaling) { byPrometheus(a); test.change(a) })
		got := scaledObjectOf(o).(*unstructured.Unstructured).Object["spec"].(map[string]any)
		for _, other := range []string{"scaleTargetRef", "minReplicaCount", "maxReplicaCount", "triggers"} {
			delete(got, other)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
