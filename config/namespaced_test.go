// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/hack/namespaced/scope"
)

// team is the namespace of an install in another one than the default.
const team = "team-operator"

// inNamespace is the whole install in a namespace of its own.
func inNamespace(t *testing.T, own string) string {
	t.Helper()
	return kustomized(t, "namespace: "+own+"\nresources: [CONFIG]\ntransformers: [CONFIG/namespaced]\n")
}

// limitedTo returns the objects of an install that is limited to namespaces.
func limitedTo(t *testing.T, text string, namespaces ...string) []object {
	t.Helper()
	limited, err := scope.Objects(untyped(t, text), namespaces)
	if err != nil {
		t.Fatal(err)
	}
	var objects []object
	for _, o := range limited {
		document, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, decode(t, document))
	}
	return objects
}

func untyped(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		o := &unstructured.Unstructured{}
		if err := errors.Join(err, yaml.Unmarshal(document, &o.Object)); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
}

// Each name that contains the namespace follows it: the user that the policy bounds, the
// names in the certificate, the subjects of the bindings, the address of the webhook. Nothing else changes.
func TestAnotherNamespace(t *testing.T) {
	for _, components := range []string{"", "components: [CONFIG/certs-self-managed]\n", "components: [CONFIG/host-network, CONFIG/keda]\n"} {
		install := "resources: [CONFIG/operator]\n" + components // Without the CRDs, which name no namespace.
		want := strings.ReplaceAll(text(t, kustomization(t, install)), system, team)
		got := text(t, kustomization(t, "namespace: "+team+"\n"+install+"transformers: [CONFIG/fetch-image, CONFIG/namespaced]\n"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s(-install, with the name replaced +in the namespace):\n%s", components, diff)
		}
	}
}

// text returns all objects in YAML, in an order that does not depend on the namespace.
func text(t *testing.T, objects []object) string {
	t.Helper()
	var all []string
	for _, o := range objects {
		all = append(all, string(encoded(t, o.meta)))
	}
	slices.Sort(all)
	return strings.Join(all, "---\n")
}

// limitedInstalls are installs that are limited to namespaces, by what they are. Two of them share no object: none is
// replaced by another, and none is admitted by both.
func limitedInstalls(t *testing.T) map[string][]object {
	t.Helper()
	selfManaged, failed := command(t, os.Getenv("KUBEBUILDER_ASSETS"), nil, "./hack/manifests.sh", "config/operator", "ops-three", "", "", "self-managed")
	if failed != "" {
		t.Fatal(failed)
	}
	out := map[string][]object{
		"limited to a and b":            limitedTo(t, inNamespace(t, "ops-one"), "a", "b"),
		"limited, without cert-manager": limitedTo(t, selfManaged, "d"),
	}
	seen := map[string]string{}
	for name, objects := range out {
		for _, o := range objects {
			if seen[o.String()] != "" {
				t.Errorf("%s is in the install that is %s and in the one that is %s", o, seen[o.String()], name)
			}
			seen[o.String()] = name
		}
	}
	return out
}
