// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"maps"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requesterPolicies are the policies that ask for the rights of the requester.
var requesterPolicies = []string{"modelbox-requester", "modelbox-delegated"}

func TestPoliciesOfRequestersApplyToEveryKind(t *testing.T) {
	objects := install(t)
	want := map[string]bool{}
	for _, gvk := range kinds(t) {
		want[gvk.Group+"/"+gvk.Version+"/"+crdOf(t, objects, gvk).Spec.Names.Plural] = true
	}
	for _, name := range requesterPolicies {
		policy := find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, name)
		got := map[string]bool{}
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			if !slices.Equal(rule.Operations, []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}) {
				t.Errorf("%s: the operations of %v are not CREATE and UPDATE", name, rule.Resources)
			}
			got[rule.APIGroups[0]+"/"+rule.APIVersions[0]+"/"+rule.Resources[0]] = len(rule.APIGroups)+len(rule.APIVersions)+len(rule.Resources) == 3
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s has rules for %v, want %v", name, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}

func TestPoliciesOfRequestersRefuse(t *testing.T) {
	objects := install(t)
	for _, name := range requesterPolicies {
		policy := find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, name)
		if policy.Spec.FailurePolicy == nil || *policy.Spec.FailurePolicy != admissionregistrationv1.Fail {
			t.Errorf("%s: failurePolicy is not Fail", name)
		}
		for _, v := range policy.Spec.Validations {
			if v.Reason == nil || *v.Reason != metav1.StatusReasonForbidden {
				t.Errorf("%s: the reason of %q is not Forbidden", name, v.Expression)
			}
			if v.Message == "" || v.MessageExpression == "" {
				t.Errorf("%s: %q has no message, or no messageExpression", name, v.Expression)
			}
		}
		binding := find[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, objects, name)
		if binding.Spec.PolicyName != name || !slices.Equal(binding.Spec.ValidationActions, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}) {
			t.Errorf("the binding %s does not deny by the policy of its name: %+v", name, binding.Spec)
		}
	}
}

// The conditions decide which requests are checked at all, so both policies have the same.
func TestPoliciesOfRequestersHaveTheSameConditions(t *testing.T) {
	objects := install(t)
	var all [][]admissionregistrationv1.MatchCondition
	for _, name := range requesterPolicies {
		all = append(all, find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, name).Spec.MatchConditions)
	}
	if len(all[0]) != 2 || !slices.Equal(all[0], all[1][:2]) {
		t.Errorf("the conditions are %v and %v", all[0], all[1])
	}
}
