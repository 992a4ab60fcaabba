// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The root signs certificates of our Services only, so its key is of no use for other names. A certificate of a
// name that it does not permit is not accepted.
func TestTheRootPermitsEachName(t *testing.T) {
	objects := kustomization(t, overlays["monitoring/controller-tls"]+"\n")
	root := find[*unstructured.Unstructured](t, objects, "modelbox-root").Object
	permitted, _, _ := unstructured.NestedStringSlice(root, "spec", "nameConstraints", "permitted", "dnsDomains")
	names := 0
	for _, o := range each[*unstructured.Unstructured](objects) {
		issuer, _, _ := unstructured.NestedString(o.Object, "spec", "issuerRef", "name")
		dnsNames, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "dnsNames")
		for _, name := range dnsNames {
			names++
			if issuer == "modelbox-ca" && !slices.ContainsFunc(permitted, func(domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }) {
				t.Errorf("Certificate %s is not accepted as %s; add the name to nameConstraints in certs/root.yaml", o.GetName(), name)
			}
		}
	}
	if names < 2 {
		t.Errorf("%d names were found", names)
	}
}

func TestCertsOfMake(t *testing.T) {
	if _, failed := command(t, os.Getenv("KUBEBUILDER_ASSETS"), nil, "./hack/manifests.sh", "config/operator", "ops", "", "", "none"); !strings.Contains(failed, "CERTS is none") {
		t.Errorf("%q, want an error that names the variable", failed)
	}
}
