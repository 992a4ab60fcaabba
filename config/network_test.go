// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The webhook opens no connections, and the controller those to the API server.
func TestNetworkPoliciesLimitEgress(t *testing.T) {
	want := map[string][]networkingv1.NetworkPolicyEgressRule{
		webhookName: {},
		controllerName: {{Ports: []networkingv1.NetworkPolicyPort{
			{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(443))}, {Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(6443))},
		}}},
	}
	objects := install(t)
	eachDeployment(t, func(t *testing.T, d *appsv1.Deployment) {
		policy := find[*networkingv1.NetworkPolicy](t, objects, d.Name).Spec
		for _, direction := range []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress} {
			if !slices.Contains(policy.PolicyTypes, direction) {
				t.Errorf("the network policy does not limit %s", direction)
			}
		}
		if diff := cmp.Diff(want[d.Name], policy.Egress); diff != "" {
			t.Errorf("egress (-want +got):\n%s", diff)
		}
	})
}

// The pods have a priority class that exists in every cluster: with a class of its own, the
// install would give every user a new way to preempt other pods. Where the class is limited
// to namespaces with a quota for it, the namespace has one.
func TestPodsAreCritical(t *testing.T) {
	const class = "system-cluster-critical"
	objects := install(t)
	if classes := each[*schedulingv1.PriorityClass](objects); len(classes) > 0 {
		t.Errorf("the manifests have %d priority classes, want none", len(classes))
	}
	quota := find[*corev1.ResourceQuota](t, objects, "modelbox-critical-pods").Spec
	want := []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{class}},
	}
	if quota.ScopeSelector == nil || !cmp.Equal(quota.ScopeSelector.MatchExpressions, want) {
		t.Errorf("the quota is for %v, want %v", quota.ScopeSelector, want)
	}
	eachDeployment(t, func(t *testing.T, d *appsv1.Deployment) {
		if got := d.Spec.Template.Spec.PriorityClassName; got != class {
			t.Errorf("priorityClassName is %q, want %s", got, class)
		}
	})
}
