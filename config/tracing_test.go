// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/modelbox-operator/modelbox-operator/internal/tracing"
)

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

// The kustomization of docs/operations.md, with this folder in place of the repository, gives both
// processes the flag, which they have, and lets both connect to the port of the collector and to
// DNS. It keeps the other flags, also those of a component that sets args.
func TestTracingOfTheDocumentedOverlay(t *testing.T) {
	texts := documented(t, "operations.md", "config/network/tracing?ref=")
	if len(texts) != 1 {
		t.Fatalf("docs/operations.md has %d kustomizations for tracing, want 1", len(texts))
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
