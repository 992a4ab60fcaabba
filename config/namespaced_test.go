// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/hack/namespaced/scope"
)

// overlay writes the overlay of an install in another namespace, and returns its folder.
func overlay(t *testing.T, namespace string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	config, err := filepath.Rel(dir, here)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("namespace: %s\nresources: [%s]\ntransformers: [%s/namespaced]\n", namespace, config, config)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// scoped returns an install in a namespace of its own that is limited to others.
func scoped(t *testing.T, own string, namespaces ...string) []object {
	t.Helper()
	return limitedTo(t, kustomize(t, overlay(t, own)), namespaces...)
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
	dir := overlay(t, own)
	objects := render(t, dir)
	if text := kustomize(t, dir); strings.Contains(text, system) {
		for line := range strings.SplitSeq(text, "\n") {
			if strings.Contains(line, system) {
				t.Errorf("this still names the namespace %s: %s", system, line)
			}
		}
	}
	checkIdentity(t, objects, controllerName)
	checkNamespaced(t, objects, own)
	checkFetchImage(t, objects)
	for _, o := range objects {
		if want := map[bool]string{true: "", false: own}[clusterScoped[o.gvk.Kind]]; o.meta.GetNamespace() != want {
			t.Errorf("%s is in namespace %q, want %q", o, o.meta.GetNamespace(), want)
		}
	}
	if len(objects) != len(install(t)) {
		t.Errorf("the install has %d objects, in its own namespace %d", len(objects), len(install(t)))
	}
}

// checkNamespaced checks what names the namespace of an install.
func checkNamespaced(t *testing.T, objects []object, own string) {
	t.Helper()
	find[*corev1.Namespace](t, objects, own)
	for _, subject := range subjects(objects) {
		if subject.Kind != rbacv1.ServiceAccountKind || subject.Namespace != own {
			t.Errorf("a role is bound to %+v, want a service account of %s", subject, own)
		}
	}
	leaf := find[*certificate](t, objects, webhookName)
	for _, want := range []string{webhookName + "." + own + ".svc", webhookName + "." + own + ".svc.cluster.local"} {
		if !slices.Contains(leaf.Spec.DNSNames, want) {
			t.Errorf("the certificate is for %v, want %s among them", leaf.Spec.DNSNames, want)
		}
	}
	eachHook(t, objects, func(t *testing.T, h hook) {
		if h.client.Service.Namespace != own || h.client.Service.Name != webhookName {
			t.Errorf("it calls %+v, want %s/%s", h.client.Service, own, webhookName)
		}
		if got, want := h.configuration.Annotations["cert-manager.io/inject-ca-from"], own+"/"+leaf.Name; got != want {
			t.Errorf("the CA bundle is injected from %q, want %q", got, want)
		}
	})
}

func subjects(objects []object) []rbacv1.Subject {
	var out []rbacv1.Subject
	for _, b := range each[*rbacv1.ClusterRoleBinding](objects) {
		out = append(out, b.Subjects...)
	}
	for _, b := range each[*rbacv1.RoleBinding](objects) {
		out = append(out, b.Subjects...)
	}
	return out
}

func TestAnInstallThatIsLimitedToNamespaces(t *testing.T) {
	const own, name = "team-operator", "modelbox-controller-team-operator"
	objects := scoped(t, own, "a", "b")
	checkIdentity(t, objects, name)
	checkNamespaced(t, objects, own)
	checkFetchImage(t, objects)
	for _, o := range objects {
		switch kind := o.gvk.Kind; {
		case kind == "ClusterRole" || kind == "ClusterRoleBinding" || kind == "CustomResourceDefinition":
			t.Errorf("%s is cluster-wide", o)
		case clusterScoped[kind] || o.meta.GetNamespace() == own:
		case kind != "Role" && kind != "RoleBinding" || !slices.Contains([]string{"a", "b"}, o.meta.GetNamespace()):
			t.Errorf("%s is in namespace %q", o, o.meta.GetNamespace())
		}
	}
	controller := container(find[*appsv1.Deployment](t, objects, controllerName))
	if !slices.Equal(controller.Args, []string{"--namespaces=a,b"}) {
		t.Errorf("the flags of the controller are %v", controller.Args)
	}
	for _, b := range each[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](objects) {
		find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, b.Spec.PolicyName)
	}
}

// A Role in each namespace allows what the ClusterRole of the whole install does, and a RoleBinding
// there binds it to the process.
func TestRolesOfAnInstallThatIsLimitedToNamespaces(t *testing.T) {
	objects := scoped(t, "ops", "a", "b")
	roles, bindings := map[string]*rbacv1.Role{}, map[string]*rbacv1.RoleBinding{}
	for _, role := range each[*rbacv1.Role](objects) {
		roles[role.Namespace+"/"+role.Name] = role
	}
	for _, b := range each[*rbacv1.RoleBinding](objects) {
		bindings[b.Namespace+"/"+b.Name] = b
	}
	for _, whole := range each[*rbacv1.ClusterRoleBinding](install(t)) {
		want := find[*rbacv1.ClusterRole](t, install(t), whole.RoleRef.Name).Rules
		for _, namespace := range []string{"a", "b"} {
			b := bindings[namespace+"/"+whole.Name+"-ops"]
			if b == nil || b.RoleRef.Kind != "Role" || roles[namespace+"/"+b.RoleRef.Name] == nil {
				t.Fatalf("nothing is bound in namespace %s in place of %s", namespace, whole.Name)
			}
			if diff := cmp.Diff(want, roles[namespace+"/"+b.RoleRef.Name].Rules); diff != "" {
				t.Errorf("rules in namespace %s (-ClusterRole +Role):\n%s", namespace, diff)
			}
			if len(b.Subjects) != 1 || b.Subjects[0].Namespace != "ops" || b.Subjects[0].Name != whole.Subjects[0].Name {
				t.Errorf("%s is bound to %v", b.RoleRef.Name, b.Subjects)
			}
		}
	}
	if own := roles["ops/"+controllerName]; !may(own.Rules, "events.k8s.io", "events", "create", "patch") || !may(own.Rules, "coordination.k8s.io", "leases", "update") {
		t.Errorf("the controller may not emit the events of its lease, or not renew it: %v", own.Rules)
	}
}

// Two installs must not replace each other's objects, and no object may be admitted by both.
func TestTwoInstallsThatAreLimitedToNamespaces(t *testing.T) {
	seen, selected := map[string]string{}, map[string]string{}
	for own, namespaces := range map[string][]string{"ops-one": {"a", "b"}, "ops-two": {"c"}} {
		objects := scoped(t, own, namespaces...)
		for _, o := range objects {
			key := o.gvk.GroupKind().String() + " " + o.meta.GetNamespace() + "/" + o.meta.GetName()
			if seen[key] != "" {
				t.Errorf("%s is in the installs of %s and of %s", o, seen[key], own)
			}
			seen[key] = own
		}
		selectors := selectorsOf(objects)
		if len(selectors) < len(kinds(t)) {
			t.Errorf("only %d webhooks and policies were found", len(selectors))
		}
		for name, selector := range selectors {
			want := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces,
			}}}
			if diff := cmp.Diff(want, selector); diff != "" {
				t.Errorf("namespaceSelector of %s (-want +got):\n%s", name, diff)
			}
		}
		for _, namespace := range namespaces {
			if selected[namespace] != "" {
				t.Errorf("namespace %s is selected twice", namespace)
			}
			selected[namespace] = own
		}
	}
}

// selectorsOf returns the namespaceSelectors of all webhooks and of all bindings of policies but
// the controller's own, which must bound it in all namespaces.
func selectorsOf(objects []object) map[string]*metav1.LabelSelector {
	out := map[string]*metav1.LabelSelector{}
	for _, c := range each[*admissionregistrationv1.MutatingWebhookConfiguration](objects) {
		for _, w := range c.Webhooks {
			out[w.Name] = w.NamespaceSelector
		}
	}
	for _, c := range each[*admissionregistrationv1.ValidatingWebhookConfiguration](objects) {
		for _, w := range c.Webhooks {
			out[w.Name] = w.NamespaceSelector
		}
	}
	for _, b := range each[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](objects) {
		switch {
		case strings.HasPrefix(b.Spec.PolicyName, controllerName):
		case b.Spec.MatchResources == nil:
			out[b.Name] = nil
		default:
			out[b.Name] = b.Spec.MatchResources.NamespaceSelector
		}
	}
	return out
}

func TestNamespacesThatAnInstallCannotBeLimitedTo(t *testing.T) {
	whole := untyped(t, kustomize(t, "."))
	for want, namespaces := range map[string][]string{
		"there are no namespaces":                   nil,
		`"" is not the name of a namespace`:         {"a", ""},
		`"A" is not the name of a namespace`:        {"A"},
		`"a" occurs twice`:                          {"a", "b", "a"},
		`the operator runs in namespace "` + system: {"a", system},
	} {
		if _, err := scope.Objects(whole, namespaces); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want an error that contains %q", namespaces, err, want)
		}
	}
	if _, err := scope.Objects(nil, []string{"a"}); err == nil {
		t.Error("an install without a controller is limited")
	}
}
