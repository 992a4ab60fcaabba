// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"math"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	deployment "k8s.io/kubernetes/pkg/controller/deployment/util"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

func TestRollout(t *testing.T) {
	const rule = "must be a number from 1 to 1073741823, or a percentage from 1% to 100%"
	ruletest.Run(t, map[string]ruletest.Row{
		"1":                 {`1`, ``},
		"0":                 {`0`, `f: Invalid value: 0: ` + rule},
		"-1":                {`-1`, `f: Invalid value: -1: ` + rule},
		"the most":          {`1073741823`, ``},
		"one more":          {`1073741824`, `f: Invalid value: 1073741824: ` + rule},
		"an int32":          {`2147483647`, `f: Invalid value: 2147483647: ` + rule},
		"1 as a string":     {`"1"`, ``},
		"0 as a string":     {`"0"`, `f: Invalid value: "0": ` + rule},
		"nine digits":       {`"999999999"`, ``},
		"ten digits":        {`"1000000000"`, `f: Invalid value: "1000000000": ` + rule},
		"1%":                {`1%`, ``},
		"0%":                {`0%`, `f: Invalid value: "0%": ` + rule},
		"100%":              {`100%`, ``},
		"101%":              {`101%`, `f: Invalid value: "101%": ` + rule},
		"1000%":             {`1000%`, `f: Invalid value: "1000%": ` + rule},
		"a leading zero":    {`"05"`, `f: Invalid value: "05": ` + rule},
		"a leading zero, %": {`05%`, `f: Invalid value: "05%": ` + rule},
		"a sign":            {`"+5"`, `f: Invalid value: "+5": ` + rule},
		"a fraction":        {`2.5%`, `f: Invalid value: "2.5%": ` + rule},
		"a space":           {`"5 %"`, `f: Invalid value: "5 %": ` + rule},
		"% alone":           {`"%"`, `f: Invalid value: "%": ` + rule},
		"two %":             {`5%%`, `f: Invalid value: "5%%": ` + rule},
		"empty":             {`""`, ``},
		"words":             {`half`, `f: Invalid value: "half": ` + rule},
	}, func(v *intstr.IntOrString) field.ErrorList { return rules.Rollout(f, v) })
}

func TestRolloutOfNothing(t *testing.T) {
	t.Parallel()
	if errs := rules.Rollout(f, nil); errs != nil {
		t.Errorf("nil: %v", errs)
	}
}

// The Deployment controller adds the step to the replicas, in an int32.
func TestStepsFitTheirNumber(t *testing.T) {
	t.Parallel()
	for _, step := range []intstr.IntOrString{
		intstr.FromInt32(modelv1.MaxRollingUpdate), intstr.FromString("999999999"), intstr.FromString("100%"), intstr.FromString("99%"),
	} {
		if errs := rules.Rollout(f, &step); errs != nil {
			t.Fatal(errs)
		}
		surge, err := intstr.GetScaledValueFromIntOrPercent(new(modelv1.IntOrPercent(step)), int(modelv1.MaxReplicas), true)
		if err != nil || int64(surge)+int64(modelv1.MaxReplicas) > math.MaxInt32 {
			t.Errorf("%s of %d is %d (%v)", step.String(), modelv1.MaxReplicas, surge, err)
		}
	}
}

func TestRolloutWarning(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		step     intstr.IntOrString
		replicas int32
		want     string
	}{
		{intstr.FromString("99%"), 4, ""},
		{intstr.FromString("100%"), 4, "f: 100% of 4 replicas allows a rollout to make all pods unavailable at once"},
		{intstr.FromString("100%"), 0, ""},
		{intstr.FromInt32(3), 4, ""},
		{intstr.FromInt32(4), 4, "f: 4 of 4 replicas allows a rollout to make all pods unavailable at once"},
		{intstr.FromString("5"), 4, "f: 5 of 4 replicas allows a rollout to make all pods unavailable at once"},
		{intstr.FromString("25%"), 1, ""},
	} {
		if got := rules.RolloutWarning(f, &tc.step, &tc.replicas); got != tc.want {
			t.Errorf("%s of %d: %q, want %q", tc.step.String(), tc.replicas, got, tc.want)
		}
	}
	if got := rules.RolloutWarning(f, nil, new(int32(1))) + rules.RolloutWarning(f, new(intstr.FromInt32(1)), nil); got != "" {
		t.Errorf("nothing is known: %q", got)
	}
}

func TestStrategy(t *testing.T) {
	const step = "must be a number of pods from 0 to 1073741823, or a percentage from 0% to 100%"
	const both = "f.rollingUpdate: Invalid value: maxSurge and maxUnavailable may not both be 0, because no rollout could begin; set one of them to 1 or more"
	ruletest.Run(t, map[string]ruletest.Row{
		"empty":                     {`{}`, ``},
		"RollingUpdate":             {`{type: RollingUpdate}`, ``},
		"Recreate":                  {`{type: Recreate}`, ``},
		"another type":              {`{type: OnDelete}`, `f.type: Unsupported value: "OnDelete": supported values: "RollingUpdate", "Recreate"`},
		"steps of no type":          {`{rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}`, ``},
		"steps of RollingUpdate":    {`{type: RollingUpdate, rollingUpdate: {maxSurge: 100%, maxUnavailable: 0%}}`, ``},
		"empty steps":               {`{rollingUpdate: {}}`, ``},
		"maxSurge 0":                {`{rollingUpdate: {maxSurge: 0}}`, ``},
		"the most":                  {`{rollingUpdate: {maxSurge: 1073741823}}`, ``},
		"one more":                  {`{rollingUpdate: {maxSurge: 1073741824}}`, `f.rollingUpdate.maxSurge: Invalid value: 1073741824: ` + step},
		"-1":                        {`{rollingUpdate: {maxUnavailable: -1}}`, `f.rollingUpdate.maxUnavailable: Invalid value: -1: ` + step},
		"101%":                      {`{rollingUpdate: {maxUnavailable: 101%}}`, `f.rollingUpdate.maxUnavailable: Invalid value: "101%": ` + step},
		"a number as a string":      {`{rollingUpdate: {maxUnavailable: "1"}}`, `f.rollingUpdate.maxUnavailable: Invalid value: "1": ` + step},
		"an empty string":           {`{rollingUpdate: {maxUnavailable: ""}}`, ``}, // As if it were not set.
		"a leading zero":            {`{rollingUpdate: {maxUnavailable: 00%}}`, `f.rollingUpdate.maxUnavailable: Invalid value: "00%": ` + step},
		"words":                     {`{rollingUpdate: {maxSurge: half%}}`, `f.rollingUpdate.maxSurge: Invalid value: "half%": ` + step},
		"both 0":                    {`{rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}`, both},
		"both 0%":                   {`{rollingUpdate: {maxSurge: 0%, maxUnavailable: 0%}}`, both},
		"0 and 0%":                  {`{type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 0%}}`, both},
		"Recreate with steps":       {`{type: Recreate, rollingUpdate: {maxSurge: 1}}`, `f.rollingUpdate: Forbidden: may not be set if type is Recreate; remove rollingUpdate, or set type: RollingUpdate`},
		"Recreate with empty steps": {`{type: Recreate, rollingUpdate: {}}`, `f.rollingUpdate: Forbidden: may not be set if type is Recreate; remove rollingUpdate, or set type: RollingUpdate`},
		"all errors of two steps": {
			`{rollingUpdate: {maxSurge: -1, maxUnavailable: x}}`,
			`f.rollingUpdate.maxSurge: Invalid value: -1: ` + step + "\n" + `f.rollingUpdate.maxUnavailable: Invalid value: "x": ` + step,
		},
	}, func(s *appsv1.DeploymentStrategy) field.ErrorList { return rules.Strategy(f, s) })
	if errs := rules.Strategy(f, nil); errs != nil {
		t.Errorf("nil: %v", errs)
	}
}

func TestOneRollout(t *testing.T) {
	t.Parallel()
	strategy := &appsv1.DeploymentStrategy{}
	for _, allowed := range []*intstr.IntOrString{nil, new(intstr.FromString("")), new(intstr.FromString("25%"))} {
		if errs := rules.OneRollout(f, allowed, strategy); errs != nil {
			t.Errorf("%v: %v", allowed, errs)
		}
	}
	for _, step := range []intstr.IntOrString{intstr.FromInt32(1), intstr.FromInt32(25), intstr.FromString("25"), intstr.FromString("30%")} {
		want := "f: Forbidden: may not be set together with spec.strategy; remove spec.rollingUpdate or spec.strategy"
		if got := ruletest.Lines(rules.OneRollout(f, &step, strategy)); got != want {
			t.Errorf("%s: %s", step.String(), got)
		}
		if errs := rules.OneRollout(f, &step, nil); errs != nil {
			t.Errorf("%s without a strategy: %v", step.String(), errs)
		}
	}
}

// NeedsSparePod agrees with the Deployment controller's own calculation.
func TestNeedsSparePod(t *testing.T) {
	t.Parallel()
	steps := []*intstr.IntOrString{nil}
	for _, text := range []string{"0", "1", "2", "0%", "1%", "25%", "30%", "50%", "99%", "100%"} {
		steps = append(steps, new(intstr.Parse(text)))
	}
	orDefault := func(v *intstr.IntOrString) *intstr.IntOrString {
		if v == nil {
			return new(intstr.FromString("25%"))
		}
		return v
	}
	for _, surge := range steps {
		for _, unavailable := range steps {
			strategy := &appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: surge, MaxUnavailable: unavailable}}
			for replicas := range int32(9) {
				_, n, err := deployment.ResolveFenceposts(orDefault(surge), orDefault(unavailable), replicas)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := rules.NeedsSparePod(strategy, nil, replicas), n == 0; got != want {
					t.Errorf("maxSurge %v, maxUnavailable %v of %d: %t, want %t", surge, unavailable, replicas, got, want)
				}
			}
		}
	}
	for _, tc := range []struct {
		strategy *appsv1.DeploymentStrategy
		step     *intstr.IntOrString
		replicas int32
		want     bool
	}{
		{nil, new(intstr.FromString("25%")), 3, true},
		{nil, new(intstr.FromString("25%")), 4, false},
		{nil, nil, 3, true},
		{nil, new(intstr.FromInt32(1)), 1, false},
		{nil, new(intstr.FromString("2")), 1, false},
		{&appsv1.DeploymentStrategy{}, new(intstr.FromInt32(1)), 1, true},
		{&appsv1.DeploymentStrategy{Type: "Recreate"}, new(intstr.FromString("25%")), 1, false},
	} {
		if got := rules.NeedsSparePod(tc.strategy, tc.step, tc.replicas); got != tc.want {
			t.Errorf("%+v: %t", tc, got)
		}
	}
}
