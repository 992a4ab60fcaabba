// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"math"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

var (
	policyTypes  = []autoscalingv2.HPAScalingPolicyType{autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy}
	selectPolicy = []autoscalingv2.ScalingPolicySelect{autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect}
)

// behaviorOf returns the behavior as an autoscaler takes it, without an empty selectPolicy, which is
// none here; nil if there is no behavior.
func behaviorOf(a *modelv1.Autoscaling) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	if a.Behavior == nil {
		return nil
	}
	b := a.Behavior.DeepCopy()
	for _, r := range []*autoscalingv2.HPAScalingRules{b.ScaleUp, b.ScaleDown} {
		if r != nil && ptr.Deref(r.SelectPolicy, "") == "" {
			r.SelectPolicy = nil
		}
	}
	return b
}

// behavior returns the errors that Kubernetes returns for the behavior of a HorizontalPodAutoscaler,
// and that of too many policies. A test compares the two, as for metrics.
func behavior(at *field.Path, b *autoscalingv2.HorizontalPodAutoscalerBehavior) field.ErrorList {
	if b == nil {
		return nil
	}
	return append(scalingRules(at.Child("scaleUp"), b.ScaleUp), scalingRules(at.Child("scaleDown"), b.ScaleDown)...)
}

func scalingRules(at *field.Path, r *autoscalingv2.HPAScalingRules) field.ErrorList {
	if r == nil {
		return nil
	}
	errs := rules.Between(at.Child("stabilizationWindowSeconds"), r.StabilizationWindowSeconds, 0, modelv1.MaxStabilizationWindowSeconds)
	if selected := ptr.Deref(r.SelectPolicy, ""); selected != "" && !slices.Contains(selectPolicy, selected) {
		errs = append(errs, field.NotSupported(at.Child("selectPolicy"), selected, selectPolicy))
	}
	if r.Tolerance != nil && r.Tolerance.Sign() < 0 {
		errs = append(errs, field.Invalid(at.Child("tolerance"), r.Tolerance.String(), "must be greater than or equal to 0"))
	}
	switch policies := at.Child("policies"); {
	case r.Policies != nil && len(r.Policies) == 0:
		return append(errs, field.Required(policies, "must have a policy; remove it for the default, or set selectPolicy: Disabled not to scale"))
	case len(r.Policies) > modelv1.MaxScalingPolicies:
		return append(errs, field.TooMany(policies, len(r.Policies), modelv1.MaxScalingPolicies))
	default:
		for i := range r.Policies {
			errs = append(errs, scalingPolicy(policies.Index(i), &r.Policies[i])...)
		}
		return errs
	}
}

func scalingPolicy(at *field.Path, p *autoscalingv2.HPAScalingPolicy) field.ErrorList {
	errs := rules.Between(at.Child("value"), &p.Value, 1, math.MaxInt32)
	errs = append(errs, rules.Between(at.Child("periodSeconds"), &p.PeriodSeconds, 1, modelv1.MaxPeriodSeconds)...)
	if !slices.Contains(policyTypes, p.Type) {
		errs = append(errs, field.NotSupported(at.Child("type"), p.Type, policyTypes))
	}
	return errs
}
