// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	known, values := flagsOf(t, "controller"), map[string]string{}
	for _, arg := range container(controller).Args {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if _, ok := known[name]; !ok {
			t.Errorf("%q is not a flag of the controller", arg)
		}
		values[name] = value
	}
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
