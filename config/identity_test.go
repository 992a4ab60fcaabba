// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The policy of the controller must match the user that the pods of the controller are, and
// all that this user can send.
func TestThePolicyBoundsTheController(t *testing.T) {
	objects := install(t)
	checkIdentity(t, objects, controllerName)
	policy := find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, controllerName)
	if *policy.Spec.FailurePolicy != admissionregistrationv1.Fail {
		t.Error("failurePolicy is not Fail")
	}
	rule := policy.Spec.MatchConstraints.ResourceRules[0]
	for _, operation := range []admissionregistrationv1.OperationType{"CREATE", "UPDATE", "DELETE", "CONNECT"} {
		if !slices.Contains(rule.Operations, operation) {
			t.Errorf("the policy does not match %s", operation)
		}
	}
	for name, values := range map[string][]string{"apiGroups": rule.APIGroups, "apiVersions": rule.APIVersions} {
		if !slices.Equal(values, []string{"*"}) {
			t.Errorf("the policy matches only %s %v", name, values)
		}
	}
	if !slices.Equal(rule.Resources, []string{"*/*"}) {
		t.Errorf("the policy matches only the resources %v", rule.Resources)
	}
	for _, validation := range policy.Spec.Validations {
		if validation.Reason == nil || *validation.Reason != metav1.StatusReasonForbidden {
			t.Errorf("this validation has no reason Forbidden: %s", validation.Expression)
		}
	}
}

// checkIdentity checks that the policy of a name matches the user of the controller's pods, and
// that a binding without a selector makes it deny.
func checkIdentity(t *testing.T, objects []object, name string) {
	t.Helper()
	controller := find[*appsv1.Deployment](t, objects, controllerName)
	want := fmt.Sprintf("request.userInfo.username == 'system:serviceaccount:%s:%s'",
		controller.Namespace, controller.Spec.Template.Spec.ServiceAccountName)
	conditions := find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, name).Spec.MatchConditions
	if len(conditions) != 1 || conditions[0].Expression != want {
		t.Errorf("the policy has the conditions %v, want one, %s", conditions, want)
	}
	binding := find[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, objects, name)
	if binding.Spec.PolicyName != name {
		t.Errorf("the binding is of the policy %q, want %q", binding.Spec.PolicyName, name)
	}
	if binding.Spec.MatchResources != nil || !slices.Equal(binding.Spec.ValidationActions, []admissionregistrationv1.ValidationAction{"Deny"}) {
		t.Errorf("the binding does not deny in all namespaces: %+v", binding.Spec)
	}
}
