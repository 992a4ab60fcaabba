// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

// TestBlocks: what is around a Deployment becomes a block only if the operator makes of the block what it says.
func TestBlocks(t *testing.T) {
	t.Parallel()
	const cpu = `metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]`
	const selected = `selector: {matchLabels: {app: web}}`
	scaler := func(spec string) client.Object {
		return parsed(t, `{scaleTargetRef: {kind: Deployment, name: web, apiVersion: apps/v1}, `+spec+`}`, &autoscalingv2.HorizontalPodAutoscaler{})
	}
	budget := func(spec string) client.Object { return parsed(t, `{`+spec+`}`, &policyv1.PodDisruptionBudget{}) }
	named := func(name string, live client.Object) client.Object {
		live.SetName(name)
		return live
	}
	controlled := budget(selected + `, maxUnavailable: 1`)
	controlled.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Other", Controller: new(true)}})
	const none = "not of the Deployment"
	for name, tc := range map[string]struct {
		live client.Object
		why  string // "" if it becomes a block.
	}{
		"an autoscaler":                  {scaler(`minReplicas: 2, maxReplicas: 5, ` + cpu), ""},
		"one of the pods' and others'":   {scaler(`minReplicas: 1, maxReplicas: 5, metrics: [{type: External, external: {metric: {name: queue}, target: {type: Value, value: 3}}}]`), ""},
		"one with a behavior":            {scaler(`minReplicas: 1, maxReplicas: 5, ` + cpu + `, behavior: {scaleDown: {stabilizationWindowSeconds: 60, selectPolicy: Max, policies: [{type: Pods, value: 1, periodSeconds: 60}]}}`), ""},
		"one of another name":            {named("scaler", scaler(`minReplicas: 1, maxReplicas: 5, `+cpu)), "that of an object has its name, web"},
		"one from none":                  {scaler(`minReplicas: 0, maxReplicas: 5, ` + cpu), "only KEDA scales to zero replicas"},
		"one of too many replicas":       {scaler(`minReplicas: 1, maxReplicas: 2147483647, ` + cpu), "spec.autoscaling.maxReplicas"},
		"one of another Deployment":      {parsed(t, `{scaleTargetRef: {kind: Deployment, name: other}}`, &autoscalingv2.HorizontalPodAutoscaler{}), none},
		"one of a StatefulSet":           {parsed(t, `{scaleTargetRef: {kind: StatefulSet, name: web}}`, &autoscalingv2.HorizontalPodAutoscaler{}), none},
		"a budget":                       {budget(selected + `, maxUnavailable: 1`), ""},
		"a percentage":                   {budget(selected + `, maxUnavailable: 30%`), ""},
		"a minimum":                      {budget(selected + `, minAvailable: 1`), ""},
		"a minimum in percent":           {budget(selected + `, minAvailable: 50%, unhealthyPodEvictionPolicy: AlwaysAllow`), ""},
		"a minimum of all":               {budget(selected + `, minAvailable: 3`), "it lets 0 of 3 pods go, and spec.disruption 1"},
		"a minimum of all in percent":    {budget(selected + `, minAvailable: 90%`), "it lets 0 of 3 pods go, and spec.disruption 1"},
		"none may go":                    {budget(selected + `, maxUnavailable: 0`), "spec.disruption.maxUnavailable"},
		"neither bound":                  {budget(selected), "must have exactly one of maxUnavailable and minAvailable"},
		"unhealthy pods stay":            {budget(selected + `, maxUnavailable: 1, unhealthyPodEvictionPolicy: IfHealthyBudget`), "unhealthyPodEvictionPolicy is IfHealthyBudget"},
		"a selector of more":             {budget(`selector: {matchLabels: {tier: a}}, maxUnavailable: 1`), "it has another selector than the Deployment"},
		"a selector by expression":       {budget(`selector: {matchExpressions: [{key: app, operator: Exists}]}, maxUnavailable: 1`), "it has another selector than the Deployment"},
		"a budget of another name":       {named("web-pdb", budget(selected+`, maxUnavailable: 1`)), "that of an object has its name, web"},
		"a budget of other pods":         {budget(`selector: {matchLabels: {app: other}}, maxUnavailable: 1`), none},
		"a budget that another controls": {controlled, none},
	} {
		d := parsed(t, `{replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web, tier: a}}}}`, &appsv1.Deployment{}).(*appsv1.Deployment)
		if !isOf(tc.live, d) {
			if tc.why != none {
				t.Errorf("%s: it is not one of the Deployment", name)
			}
			continue
		}
		_, err := blockOf(kinds.ModelBox(), d, tc.live)
		if (err == nil) != (tc.why == "") || err != nil && !strings.Contains(err.Error(), tc.why) {
			t.Errorf("%s: got %v, want %q", name, err, tc.why)
		}
		d.Spec.Replicas = new(int32(1))
		_, isBudget := tc.live.(*policyv1.PodDisruptionBudget)
		if _, err := blockOf(kinds.ModelBox(), d, tc.live); isBudget && err == nil {
			t.Errorf("%s: one replica has a budget", name)
		}
	}
}

// parsed returns an object called web of a spec in YAML.
func parsed(t *testing.T, spec string, into client.Object) client.Object {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(`{spec: `+spec+`}`), into); err != nil {
		t.Fatal(err)
	}
	into.SetName("web")
	return into
}
