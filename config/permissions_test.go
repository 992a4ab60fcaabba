// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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

// resources returns the resources and subresources of the CRDs.
func resources(t *testing.T, objects []object) map[schema.GroupResource]bool {
	t.Helper()
	out := map[schema.GroupResource]bool{}
	for _, gvk := range kinds(t) {
		crd := crdOf(t, objects, gvk)
		plural := crd.Spec.Names.Plural
		out[schema.GroupResource{Group: gvk.Group, Resource: plural}] = true
		out[schema.GroupResource{Group: gvk.Group, Resource: plural + "/status"}] = true
		out[schema.GroupResource{Group: gvk.Group, Resource: plural + "/scale"}] = crd.Spec.Versions[0].Subresources.Scale != nil
	}
	return out
}
