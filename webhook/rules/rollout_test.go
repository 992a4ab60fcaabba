// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
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
