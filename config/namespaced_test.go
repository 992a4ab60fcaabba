// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/hack/namespaced/scope"
)

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

// Each name that contains the namespace must follow it: the user that the policy bounds, the
// names in the certificate, the subjects of the bindings, the address of the webhook.
func TestAnotherNamespace(t *testing.T) {
	const own = "team-operator"
	objects := parse(t, inNamespace(t, own))
	checkNamespace(t, objects, own)
	checkIdentity(t, objects, controllerName)
	checkFetchImage(t, objects)
}

// checkNamespace checks that an install in another namespace does not name the default one.
func checkNamespace(t *testing.T, objects []object, own string) {
	t.Helper()
	for _, o := range objects {
		if strings.Contains(string(o.json), system) {
			t.Errorf("%s names the namespace %s", o, system)
		}
		if want := map[bool]string{true: "", false: own}[clusterScoped[o.gvk.Kind]]; o.meta.GetNamespace() != want {
			t.Errorf("%s is in namespace %q, want %q", o, o.meta.GetNamespace(), want)
		}
	}
}

// An install that is limited to namespaces grants nothing cluster-wide. A Role in each namespace
// allows what the ClusterRole of the whole install does. Two installs do not replace each other's
// objects, and no object is admitted by both.
func TestInstallsThatAreLimitedToNamespaces(t *testing.T) {
	whole := find[*rbacv1.ClusterRole](t, install(t), controllerName).Rules
	seen := map[string]string{}
	for own, namespaces := range map[string][]string{"ops-one": {"a", "b"}, "ops-two": {"c"}} {
		objects := limitedTo(t, inNamespace(t, own), namespaces...)
		checkIdentity(t, objects, controllerName+"-"+own)
		checkFetchImage(t, objects)
		roles, bound := map[string][]rbacv1.PolicyRule{}, map[string]rbacv1.RoleBinding{}
		for _, role := range each[*rbacv1.Role](objects) {
			roles[role.Namespace] = role.Rules
		}
		for _, b := range each[*rbacv1.RoleBinding](objects) {
			bound[b.Namespace] = *b
		}
		for _, o := range objects {
			if slices.Contains([]string{"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}, o.gvk.Kind) {
				t.Errorf("%s is cluster-wide", o)
			}
			isRole := o.gvk.Kind == "Role" || o.gvk.Kind == "RoleBinding"
			if in := o.meta.GetNamespace(); !clusterScoped[o.gvk.Kind] && in != own && (!isRole || !slices.Contains(namespaces, in)) {
				t.Errorf("%s is in namespace %q", o, in)
			}
			key := o.gvk.GroupKind().String() + " " + o.meta.GetNamespace() + "/" + o.meta.GetName()
			if seen[key] != "" {
				t.Errorf("%s is in the installs of %s and of %s", o, seen[key], own)
			}
			seen[key] = own
		}
		for _, namespace := range namespaces {
			if diff := cmp.Diff(whole, roles[namespace]); diff != "" {
				t.Errorf("rules in namespace %s (-ClusterRole +Role):\n%s", namespace, diff)
			}
			want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: controllerName, Namespace: own}}
			if b := bound[namespace]; b.RoleRef.Kind != "Role" || b.RoleRef.Name != controllerName+"-"+own || !slices.Equal(b.Subjects, want) {
				t.Errorf("namespace %s has the binding %+v", namespace, b)
			}
		}
		if r := roles[own]; !may(r, "events.k8s.io", "events", "create", "patch") || !may(r, "coordination.k8s.io", "leases", "update") {
			t.Errorf("the controller may not emit the events of its lease, or not renew it: %v", r)
		}
		if args := container(find[*appsv1.Deployment](t, objects, controllerName)).Args; !slices.Equal(args, []string{"--namespaces=" + strings.Join(namespaces, ",")}) {
			t.Errorf("the flags of the controller are %v", args)
		}
		checkSelectors(t, objects, namespaces)
	}
}

// checkSelectors checks the namespaceSelectors of all webhooks and of all bindings of policies but
// the controller's own, which must bound it in all namespaces.
func checkSelectors(t *testing.T, objects []object, namespaces []string) {
	t.Helper()
	selectors := map[string]*metav1.LabelSelector{}
	for _, h := range slices.Concat(hooks(objects)["mutating"], hooks(objects)["validating"]) {
		selectors[h.name] = h.namespaces
	}
	for _, b := range each[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](objects) {
		find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, b.Spec.PolicyName)
		if !strings.HasPrefix(b.Spec.PolicyName, controllerName) {
			selectors[b.Name] = ptr.Deref(b.Spec.MatchResources, admissionregistrationv1.MatchResources{}).NamespaceSelector
		}
	}
	// Of each kind two webhooks, and of the policies the freeze too.
	if want := 2*len(kindsOf(t)) + len(requesterPolicies) + 1; len(selectors) != want {
		t.Errorf("%d webhooks and policies were found, want %d", len(selectors), want)
	}
	want := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces,
	}}}
	for name, selector := range selectors {
		if diff := cmp.Diff(want, selector); diff != "" {
			t.Errorf("namespaceSelector of %s (-want +got):\n%s", name, diff)
		}
	}
}
