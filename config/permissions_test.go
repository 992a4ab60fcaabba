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

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// Each process has its own service account, and only the roles of that process are bound
// to it.
func TestServiceAccountsHaveOnlyTheirOwnRoles(t *testing.T) {
	objects := install(t)
	got := map[string][]string{}
	add := func(subjects []rbacv1.Subject, to rbacv1.RoleRef, by string) {
		for _, s := range subjects {
			account := s.Kind + " " + s.Namespace + "/" + s.Name
			got[account] = append(got[account], by+" to "+to.Kind+" "+to.Name)
		}
		if _, ok := rulesOf(objects)[to.Kind+" "+to.Name]; !ok {
			t.Errorf("a %s binds %s %q, which is not in the manifests", by, to.Kind, to.Name)
		}
	}
	for _, b := range each[*rbacv1.ClusterRoleBinding](objects) {
		add(b.Subjects, b.RoleRef, "ClusterRoleBinding")
	}
	for _, b := range each[*rbacv1.RoleBinding](objects) {
		add(b.Subjects, b.RoleRef, "RoleBinding")
	}
	want := map[string][]string{
		"ServiceAccount " + system + "/" + controllerName: {
			"ClusterRoleBinding to ClusterRole " + controllerName, "RoleBinding to Role " + controllerName,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bindings of the service accounts (-want +got):\n%s", diff)
	}
	for _, name := range []string{webhookName, controllerName} {
		find[*corev1.ServiceAccount](t, objects, name)
		if got := find[*appsv1.Deployment](t, objects, name).Spec.Template.Spec.ServiceAccountName; got != name {
			t.Errorf("Deployment %s runs as %q, want its own service account %q", name, got, name)
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

// Users must not write what only the operator writes, and must not get permissions on
// other resources by these roles. What they may do, test/integration tries.
func TestAggregatedRolesAllowNothingElse(t *testing.T) {
	objects := install(t)
	reads := []string{"get", "list", "watch"}
	known := resources(t, objects)
	for _, name := range []string{"modelbox-view", "modelbox-edit"} {
		for _, rule := range find[*rbacv1.ClusterRole](t, objects, name).Rules {
			writes := slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains(reads, verb) })
			if writes && name == "modelbox-view" {
				t.Errorf("ClusterRole %s allows more than reading: %v", name, rule)
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					_, sub, _ := strings.Cut(resource, "/")
					if writes && sub != "" && sub != "scale" {
						t.Errorf("ClusterRole %s allows to write %s: %v", name, resource, rule)
					}
					if !known[schema.GroupResource{Group: group, Resource: resource}] {
						t.Errorf("ClusterRole %s names %s of %q, which no CRD has", name, resource, group)
					}
				}
			}
		}
	}
}

// The role of the sizes allows their use, and nothing else.
func TestTheRoleOfTheSizesAllowsNothingElse(t *testing.T) {
	want := []rbacv1.PolicyRule{{APIGroups: []string{"rights.modelbox-operator.github.io"}, Resources: []string{"sizes"}, Verbs: []string{"use"}}}
	if diff := cmp.Diff(want, find[*rbacv1.ClusterRole](t, install(t), "modelbox-sizes").Rules); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// resources returns the resources and subresources of the CRDs.
func resources(t *testing.T, objects []object) map[schema.GroupResource]bool {
	t.Helper()
	out := map[schema.GroupResource]bool{}
	for _, gvk := range kindsOf(t) {
		crd := crdOf(t, objects, gvk)
		plural := crd.Spec.Names.Plural
		out[schema.GroupResource{Group: gvk.Group, Resource: plural}] = true
		out[schema.GroupResource{Group: gvk.Group, Resource: plural + "/status"}] = true
		out[schema.GroupResource{Group: gvk.Group, Resource: plural + "/scale"}] = crd.Spec.Versions[0].Subresources.Scale != nil
	}
	return out
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

// The conditions decide which requests are checked at all, so both policies have the same.
func TestPoliciesOfRequestersApplyToEveryKind(t *testing.T) {
	objects := install(t)
	want := map[string]bool{}
	for _, gvk := range kindsOf(t) {
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
