// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

var disruption = Block{
	Field:    "disruption",
	Kind:     policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
	Type:     &policyv1.PodDisruptionBudget{},
	Desired:  disruptionBudget,
	Validate: validateDisruption,
}

// disruptionBudget returns nil for at most one replica, because a budget would block each drain, or
// have no effect.
func disruptionBudget(o *Object) kinds.Object {
	if o.Disruption == nil || o.Replicas < 2 {
		return nil
	}
	always := policyv1.AlwaysAllow // Pods that are not ready must not block a drain either.
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"},
		ObjectMeta: o.Meta,
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector:                   &metav1.LabelSelector{MatchLabels: o.Selector},
			MaxUnavailable:             evictable(o.Disruption, o.Replicas),
			UnhealthyPodEvictionPolicy: &always,
		},
	}
}

// evictable returns how many pods may be unavailable, one at least: what a minimum of available
// pods leaves of all. A minimum itself can block each drain, and the policy of the controller
// cannot tell, because it has no replicas.
func evictable(d *modelv1.Disruption, replicas int32) *intstr.IntOrString {
	minimum := numberOfPods(d.MinAvailable)
	if minimum == nil {
		return numberOfPods(d.MaxUnavailable)
	}
	kept, err := intstr.GetScaledValueFromIntOrPercent(minimum, int(replicas), true)
	if err != nil || kept >= int(replicas) {
		kept = int(replicas) - 1
	}
	return new(intstr.FromInt32(replicas - int32(kept))) //nolint:gosec // It is less than replicas.
}

func numberOfPods(v *intstr.IntOrString) *intstr.IntOrString {
	if modelv1.IsUnset(v) {
		return nil
	}
	return new(modelv1.IntOrPercent(*v))
}

func validateDisruption(path *field.Path, o *Object) field.ErrorList {
	d := o.Disruption
	switch {
	case d == nil:
		return nil
	case modelv1.IsUnset(d.MaxUnavailable) == modelv1.IsUnset(d.MinAvailable):
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must have exactly one of maxUnavailable and minAvailable")}
	}
	return append(rules.Rollout(path.Child("maxUnavailable"), d.MaxUnavailable), rules.Rollout(path.Child("minAvailable"), d.MinAvailable)...)
}
