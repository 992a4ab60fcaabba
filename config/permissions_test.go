// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rulesOf returns the rules of all roles, by the role's kind and name.
func rulesOf(objects []object) map[string][]rbacv1.PolicyRule {
	out := map[string][]rbacv1.PolicyRule{}
	for _, role := range each[*rbacv1.Role](objects) {
		out["Role "+role.Name] = role.Rules
	}
	for _, role := range each[*rbacv1.ClusterRole](objects) {
		out["ClusterRole "+role.Name] = role.Rules
	}
	return out
}

// Leases are in one namespace, and so are not in a ClusterRole.
func TestNoRuleHasAWildcardOrNamesSecrets(t *testing.T) {
	for role, rules := range rulesOf(install(t)) {
		for _, rule := range rules {
			for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames, rule.NonResourceURLs) {
				if strings.Contains(word, "*") {
					t.Errorf("%s has the wildcard %q in %v", role, word, rule)
				}
			}
			for _, resource := range rule.Resources {
				if parent, _, _ := strings.Cut(resource, "/"); parent == "secrets" || parent == "leases" && strings.HasPrefix(role, "ClusterRole") {
					t.Errorf("%s names %s: %v", role, parent, rule)
				}
			}
		}
	}
}

// may reports whether the rules allow all verbs on a resource.
func may(rules []rbacv1.PolicyRule, group, resource string, verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(verb string) bool {
		return !slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb)
		})
	})
}

// requesterPolicies are the policies that ask for the permissions of the requester.
var requesterPolicies = []string{"modelbox-requester", "modelbox-delegated"}

// A policy that ignores an error, has no binding that denies, or answers with another reason bounds
// nothing, or is not understood.
func TestPoliciesRefuse(t *testing.T) {
	objects := install(t)
	for _, name := range append(requesterPolicies, controllerName, "modelbox-frozen") {
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

// oldFunctions are the functions and macros of CEL that Kubernetes 1.30, the oldest version that the
// operator supports, accepts: those that the version before it can evaluate.
var oldFunctions = strings.Fields(`all exists exists_one filter has map
	bool bytes double duration dyn int string timestamp type uint
	contains endsWith lowerAscii matches replace size split startsWith substring trim upperAscii
	charAt find findAll indexOf isSorted isURL join lastIndexOf max min sum
	hasValue optMap or orValue isGreaterThan isLessThan isQuantity quantity
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
