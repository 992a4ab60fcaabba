// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	podsecurity "k8s.io/pod-security-admission/api"

	"github.com/modelbox-operator/modelbox-operator/internal/tracing"
)

// with returns the objects of the install and config/monitoring with a component.
func with(t *testing.T, component string) []object {
	t.Helper()
	return kustomization(t, "resources: [CONFIG, CONFIG/monitoring]\ncomponents: [CONFIG/"+component+"]\n")
}

const controllerTLS = "monitoring/controller-tls"

// The controller serves the certificate that Prometheus expects, by flags that it has.
func TestControllerMetricsOverTLS(t *testing.T) {
	objects := with(t, controllerTLS)
	controller := find[*appsv1.Deployment](t, objects, controllerName)
	cert := find[*certificate](t, objects, "modelbox-controller-metrics")
	values := setFlags(t, controller)
	if _, ok := values["metrics-secure"]; !ok {
		t.Errorf("the arguments are %v, without --metrics-secure", values)
	}
	if diff := cmp.Diff(map[string]string{values["metrics-cert-path"]: cert.Spec.SecretName}, mountedSecrets(t, controller)); diff != "" {
		t.Errorf("mounted Secrets, by path (-want +got):\n%s", diff)
	}
	find[*issuer](t, objects, cert.Spec.IssuerRef.Name)

	endpoint := find[*serviceMonitor](t, objects, controllerName).Spec.Endpoints[0]
	if endpoint.Scheme != "https" || endpoint.BearerTokenFile == "" || endpoint.TLSConfig == nil {
		t.Fatalf("the endpoint is %+v", endpoint)
	}
	if name := endpoint.TLSConfig.ServerName; !slices.Contains(cert.Spec.DNSNames, name) {
		t.Errorf("Prometheus expects the name %q, and the certificate has %v", name, cert.Spec.DNSNames)
	}
	if secret := endpoint.TLSConfig.CA.Secret; secret.Name != cert.Spec.SecretName || secret.Key != "ca.crt" {
		t.Errorf("Prometheus verifies with %+v", secret)
	}
}

// The install and config/monitoring alone serve metrics as before, and need no such permission.
func TestDefaultMetricsNeedNoPermissions(t *testing.T) {
	objects := slices.Concat(install(t), monitoring(t))
	for _, b := range each[*rbacv1.ClusterRoleBinding](objects) {
		if b.RoleRef.Name == "system:auth-delegator" {
			t.Errorf("%s binds %s", b.Name, b.RoleRef.Name)
		}
	}
	if args := container(find[*appsv1.Deployment](t, objects, controllerName)).Args; slices.Contains(args, "--metrics-secure") {
		t.Errorf("the controller has the arguments %v", args)
	}
	for _, role := range each[*rbacv1.ClusterRole](objects) {
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "tokenreviews") || slices.Contains(rule.Resources, "subjectaccessreviews") {
				t.Errorf("%s has %v", role.Name, rule)
			}
		}
	}
}

const tracingPolicy = "modelbox-tracing"

// The install sends no spans, and its pods cannot connect to a collector.
func TestTracingIsOff(t *testing.T) {
	objects := install(t)
	for _, policy := range each[*networkingv1.NetworkPolicy](objects) {
		if policy.Name == tracingPolicy {
			t.Error("the network policy for tracing is a part of the install")
		}
	}
	for _, d := range each[*appsv1.Deployment](objects) {
		c := container(d)
		if all := strings.Join(slices.Concat(c.Command, c.Args), " "); strings.Contains(all, "tracing") {
			t.Errorf("%s has the flags %s", d.Name, all)
		}
	}
}

// The kustomization of docs/monitoring.md, with this folder in place of the repository, gives both
// processes the flag, which they have, and lets both connect to the port of the collector and to
// DNS. It keeps the other flags, also those of a component that sets args.
func TestTracingOfTheDocumentedOverlay(t *testing.T) {
	texts := documented(t, "monitoring.md", "config/network/tracing?ref=")
	if len(texts) != 1 {
		t.Fatalf("docs/monitoring.md has %d kustomizations for tracing, want 1", len(texts))
	}
	text := texts[0]
	for _, more := range []string{"", "components: [CONFIG/monitoring/controller-tls]\n"} {
		if more != "" {
			text = strings.Replace(text, "resources:\n", "resources:\n- CONFIG/monitoring\n", 1)
		}
		objects := kustomization(t, text+more)
		policy := find[*networkingv1.NetworkPolicy](t, objects, tracingPolicy)
		for _, name := range []string{webhookName, controllerName} {
			checkTraced(t, find[*appsv1.Deployment](t, objects, name), policy, regexp.MustCompile(`--tracing-endpoint=[^\s\]]+`).FindString(text))
		}
		if args := container(find[*appsv1.Deployment](t, objects, controllerName)).Args; more != "" && !slices.Contains(args, "--metrics-secure") {
			t.Errorf("the arguments of the controller are %q", args)
		}
	}
}

// checkTraced checks that a process has a flag of tracing, which is valid, and the egress for it.
func checkTraced(t *testing.T, d *appsv1.Deployment, policy *networkingv1.NetworkPolicy, endpoint string) {
	t.Helper()
	flags, o := flag.NewFlagSet("", flag.ContinueOnError), tracing.Options{}
	o.AddFlags(flags)
	if err := flags.Parse([]string{endpoint}); err != nil || flags.NFlag() != 1 {
		t.Errorf("the flag %q: %v", endpoint, err)
	}
	if c := container(d); !slices.Contains(slices.Concat(c.Command, c.Args), endpoint) {
		t.Errorf("the flags of %s are %q and %q, without %q", d.Name, c.Command, c.Args, endpoint)
	}
	if !selects(t, &policy.Spec.PodSelector, d) || policy.Namespace != d.Namespace {
		t.Errorf("the network policy does not select the pods of %s", d.Name)
	}
}

func TestOnlyAComponentLetsTheControllerReadSecrets(t *testing.T) {
	checkComponent(t, "restart-on-secrets", controllerName+"-secrets", schema.GroupResource{Resource: "secrets"}, "get", "list", "watch")
}

// checkComponent checks that a component, and not the install, has a role of this name, which lets the controller do this with
// one resource and nothing else, also in an install with another namespace.
func checkComponent(t *testing.T, component, name string, resource schema.GroupResource, verbs ...string) {
	t.Helper()
	for _, o := range install(t) {
		if o.meta.GetName() == name {
			t.Errorf("the install has %s", o)
		}
	}
	for namespace, fields := range map[string]string{system: "", "team": "namespace: team\ntransformers: [CONFIG/fetch-image, CONFIG/namespaced]\n"} {
		objects := kustomization(t, fields+"resources: [CONFIG]\ncomponents: [CONFIG/"+component+"]\n")
		rules := find[*rbacv1.ClusterRole](t, objects, name).Rules
		if len(rules) != 1 || len(rules[0].Resources) != 1 || len(rules[0].Verbs) != len(verbs) || !may(rules, resource.Group, resource.Resource, verbs...) {
			t.Errorf("the rules of %s are %v", component, rules)
		}
		binding := find[*rbacv1.ClusterRoleBinding](t, objects, name)
		want := rbacv1.Subject{Kind: "ServiceAccount", Name: controllerName, Namespace: namespace}
		if binding.RoleRef.Name != name || len(binding.Subjects) != 1 || binding.Subjects[0] != want {
			t.Errorf("the binding is %+v", binding)
		}
	}
}

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

// On the network of the nodes two pods of the webhook cannot be on one node, so a rollout deletes
// first; and the namespace has to allow such pods.
func TestHostNetwork(t *testing.T) {
	texts := documented(t, "clouds.md", "/host-network?ref=")
	if len(texts) != 1 {
		t.Fatalf("docs/clouds.md has %d kustomizations, want 1", len(texts))
	}
	for namespace, fields := range map[string]string{system: "", "ops": "namespace: ops\ntransformers: [CONFIG/fetch-image, CONFIG/namespaced]\n"} {
		objects := kustomization(t, texts[0]+"\n"+fields)
		if got := find[*corev1.Namespace](t, objects, namespace).Labels[podsecurity.EnforceLevelLabel]; got != string(podsecurity.LevelPrivileged) {
			t.Errorf("the namespace enforces %q", got)
		}
		for _, d := range each[*appsv1.Deployment](objects) {
			first := d.Spec.Strategy.RollingUpdate.MaxSurge.IntValue() == 0 && d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() == 1
			if on := d.Name == webhookName; d.Spec.Template.Spec.HostNetwork != on || first != on {
				t.Errorf("%s: hostNetwork is %t, and a rollout deletes first: %t", d.Name, d.Spec.Template.Spec.HostNetwork, first)
			}
		}
	}
}
