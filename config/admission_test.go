// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"maps"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Each kind is in the rules of both webhook configurations, with the operations that admission decides on.
func TestWebhooksHaveRulesForEveryKind(t *testing.T) {
	objects := install(t)
	want := map[string]bool{}
	for _, gvk := range kindsOf(t) {
		want[gvk.Group+"/"+gvk.Version+"/"+crdOf(t, objects, gvk).Spec.Names.Plural] = true
	}
	var rules [][]admissionregistrationv1.RuleWithOperations
	for _, w := range find[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects, webhookName).Webhooks {
		rules = append(rules, w.Rules)
	}
	for _, w := range find[*admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, webhookName).Webhooks {
		rules = append(rules, w.Rules)
	}
	times := map[string]int{}
	for _, rule := range slices.Concat(rules...) {
		times[rule.APIGroups[0]+"/"+rule.APIVersions[0]+"/"+rule.Resources[0]]++
	}
	for kind, n := range times {
		if !want[kind] || n != 2 {
			t.Errorf("%s is in %d rules, want 2 for each of %v", kind, n, slices.Sorted(maps.Keys(want)))
		}
	}
	if len(times) != len(want) {
		t.Errorf("the webhooks have rules for %v, want %v", times, want)
	}
}
