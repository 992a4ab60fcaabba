// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requesterPolicies are the policies that ask for the permissions of the requester.
var requesterPolicies = []string{"modelbox-requester", "modelbox-delegated"}

// A policy that ignores an error, has no binding that denies, or answers with another reason bounds
// nothing, or is not understood.
func TestPoliciesRefuse(t *testing.T) {
	objects := install(t)
	for _, name := range append(requesterPolicies, controllerName) {
		policy := find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, name)
		if policy.Spec.FailurePolicy == nil || *policy.Spec.FailurePolicy != admissionregistrationv1.Fail {
			t.Errorf("%s: failurePolicy is not Fail", name)
		}
		for _, v := range policy.Spec.Validations {
			if v.Reason == nil || *v.Reason != metav1.StatusReasonForbidden || v.Message+v.MessageExpression == "" {
				t.Errorf("%s: %q has no reason Forbidden, or no message", name, v.Expression)
			}
		}
		binding := find[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, objects, name).Spec
		if binding.PolicyName != name || binding.MatchResources != nil || !slices.Equal(binding.ValidationActions, []admissionregistrationv1.ValidationAction{"Deny"}) {
			t.Errorf("the binding %s does not deny by the policy of its name, in all namespaces: %+v", name, binding)
		}
	}
}

// The conditions decide which requests are checked at all, so both policies have the same.
func TestPoliciesOfRequestersApplyToEveryKind(t *testing.T) {
	objects := install(t)
	want := map[string]bool{}
	for _, gvk := range kinds(t) {
		want[gvk.Group+"/"+gvk.Version+"/"+crdOf(t, objects, gvk).Spec.Names.Plural] = true
	}
	var conditions [][]admissionregistrationv1.MatchCondition
	for _, name := range requesterPolicies {
		policy := find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, name)
		conditions = append(conditions, policy.Spec.MatchConditions)
		got := map[string]bool{}
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			if !slices.Equal(rule.Operations, []admissionregistrationv1.OperationType{"CREATE", "UPDATE"}) {
				t.Errorf("%s: the operations of %v are not CREATE and UPDATE", name, rule.Resources)
			}
			got[rule.APIGroups[0]+"/"+rule.APIVersions[0]+"/"+rule.Resources[0]] = len(rule.APIGroups)+len(rule.APIVersions)+len(rule.Resources) == 3
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s has rules for %v, want %v", name, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
	if len(conditions[0]) != 2 || !slices.Equal(conditions[0], conditions[1][:2]) {
		t.Errorf("the conditions are %v and %v", conditions[0], conditions[1])
	}
}

// oldFunctions are the functions and macros of CEL that Kubernetes 1.30, the oldest version that the
// operator supports, accepts: those that the version before it can evaluate.
var oldFunctions = strings.Fields(`all exists exists_one filter has map
	bool bytes double duration dyn int string timestamp type uint
	contains endsWith lowerAscii matches replace size split startsWith substring trim upperAscii
	charAt find findAll indexOf isSorted isURL join lastIndexOf max min sum
	hasValue optMap orValue isGreaterThan isLessThan isQuantity quantity
	allowed check errored group name namespace path reason resource serviceAccount subresource`)

var (
	literals   = regexp.MustCompile(`'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"`)
	calls      = regexp.MustCompile(`(\w+)\(`)
	twoVarying = regexp.MustCompile(`\.(?:all|exists|exists_one)\(\s*\w+\s*,\s*\w+\s*,`) // A macro of Kubernetes 1.33.
)

// The API servers of the other tests are newer, and accept functions that the oldest one refuses.
func TestExpressionsAreOfTheOldestVersion(t *testing.T) {
	found := 0
	for _, o := range install(t) {
		var content any
		if err := json.Unmarshal(o.json, &content); err != nil {
			t.Fatal(err)
		}
		for _, text := range expressionsIn(content) {
			text = literals.ReplaceAllString(text, "''")
			for _, call := range calls.FindAllStringSubmatch(text, -1) {
				if found++; !slices.Contains(oldFunctions, call[1]) || twoVarying.MatchString(text) {
					t.Errorf("%s: %s in %q: is it in Kubernetes 1.29?", o, call[1], text)
				}
			}
		}
	}
	if found < 400 {
		t.Errorf("only %d calls were found", found)
	}
}

// expressionsIn returns the expressions of policies, webhooks and schemas.
func expressionsIn(content any) (out []string) {
	switch content := content.(type) {
	case []any:
		for _, item := range content {
			out = append(out, expressionsIn(item)...)
		}
	case map[string]any:
		for key, value := range content {
			if text, ok := value.(string); ok && (key == "expression" || key == "messageExpression" || key == "rule") {
				out = append(out, text)
			}
			out = append(out, expressionsIn(value)...)
		}
	}
	return out
}

// The policy of the controller must match the user that the pods of the controller are, and
// all that this user can send.
func TestThePolicyBoundsTheController(t *testing.T) {
	objects := install(t)
	checkIdentity(t, objects, controllerName)
	rule := find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, controllerName).Spec.MatchConstraints.ResourceRules[0]
	for _, operation := range []admissionregistrationv1.OperationType{"CREATE", "UPDATE", "DELETE", "CONNECT"} {
		if !slices.Contains(rule.Operations, operation) {
			t.Errorf("the policy does not match %s", operation)
		}
	}
	if words := slices.Concat(rule.APIGroups, rule.APIVersions, rule.Resources); !slices.Equal(words, []string{"*", "*", "*/*"}) {
		t.Errorf("the policy matches only %v", words)
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
