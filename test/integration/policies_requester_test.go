// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// tenant is a client of a user who has the name of its namespace.
type tenant struct {
	dynamic.Interface
	namespace string
}

// user creates a namespace, with a name that begins with the given one, and a user with
// roles there.
func user(t *testing.T, name string, annotations map[string]string, roles ...any) tenant {
	t.Helper()
	namespace := unique(name)
	if err := newNamespace(t.Context(), namespace, annotations); err != nil {
		t.Fatal(err)
	}
	if err := bind(t.Context(), namespace, namespace, roles...); err != nil {
		t.Fatal(err)
	}
	c, err := as(namespace)
	if err != nil {
		t.Fatal(err)
	}
	return tenant{c, namespace}
}

// tried returns the outcome of a dry run of a create, and its error.
func tried(t *testing.T, c tenant, k kind, name string, s spec) (outcome, error) {
	t.Helper()
	_, err := k.in(c, c.namespace).Create(t.Context(), k.object(name, s), metav1.CreateOptions{DryRun: dryRun})
	return outcomeOf(err), err
}

// Each right allows the kinds that need it and no other, and each kind needs no other.
func TestNeededRights(t *testing.T) {
	t.Parallel()
	plain := spec{"image": "a:1"}
	withPorts := spec{"image": "a:1", "ports": []any{map[string]any{"port": int64(80)}}}
	noPorts := spec{"image": "a:1", "ports": []any{}}
	web, other := spec{"deploymentName": "web", "replicas": int64(0)}, spec{"deploymentName": "other", "replicas": int64(0)}
	creates := func(resources ...string) rbacv1.PolicyRule { return rule("apps", []string{"create"}, resources...) }
	services := rule("", []string{"create"}, "services")
	tests := map[string]struct {
		rules   []rbacv1.PolicyRule
		allowed map[string]bool
	}{
		"none":           {nil, nil},
		"deployments":    {[]rbacv1.PolicyRule{creates("deployments")}, map[string]bool{"ModelBox": true, "App": true}},
		"services":       {[]rbacv1.PolicyRule{services}, nil},
		"both":           {[]rbacv1.PolicyRule{creates("deployments"), services}, map[string]bool{"ModelBox": true, "App": true, "ModelBox with ports": true, "App with ports": true}},
		"daemonsets":     {[]rbacv1.PolicyRule{creates("daemonsets")}, map[string]bool{"Genericdaemon": true}},
		"updates":        {[]rbacv1.PolicyRule{rule("apps", []string{"update", "get", "delete"}, "*")}, nil},
		"extensions":     {[]rbacv1.PolicyRule{rule("extensions", every, "*")}, nil},
		"statefulsets":   {[]rbacv1.PolicyRule{rule("apps", every, "statefulsets", "replicasets", "deployments/status")}, nil},
		"one-scale":      {[]rbacv1.PolicyRule{named(rule("apps", []string{"patch"}, "deployments/scale"), "web")}, map[string]bool{"UnitedDeployment": true}},
		"one-deployment": {[]rbacv1.PolicyRule{named(rule("apps", []string{"patch"}, "deployments"), "web")}, map[string]bool{"Eru": true, "Eru by its name": true, "Eru by the deprecated field": true}},
		"all-scales":     {[]rbacv1.PolicyRule{rule("apps", []string{"patch"}, "deployments/scale")}, map[string]bool{"UnitedDeployment": true, "UnitedDeployment of another": true}},
		"another-kind":   {[]rbacv1.PolicyRule{rule(virtualGroup, []string{"use"}, "apps")}, map[string]bool{"App": true, "App with ports": true}},
		"another-verb":   {[]rbacv1.PolicyRule{rule(virtualGroup, []string{"create", "get", "update", "patch"}, "*")}, nil},
		"everything-here": {[]rbacv1.PolicyRule{rule("apps", every, "*"), services}, map[string]bool{
			"ModelBox": true, "App": true, "ModelBox with ports": true, "App with ports": true, "Genericdaemon": true,
			"UnitedDeployment": true, "UnitedDeployment of another": true, "Eru": true, "Eru by its name": true, "Eru of another": true,
			"Eru by the deprecated field": true, "Eru of another by the deprecated field": true, "Eru of another beside an empty name": true,
		}},
	}
	objects := map[string]struct {
		kind kind
		name string
		spec spec
	}{
		"ModelBox": {modelBox, "a", plain}, "ModelBox with ports": {modelBox, "a", withPorts},
		"App": {app, "a", noPorts}, "App with ports": {app, "a", withPorts},
		"Genericdaemon":                          {genericdaemon, "a", plain},
		"UnitedDeployment":                       {unitedDeployment, "a", web},
		"UnitedDeployment of another":            {unitedDeployment, "web", other},
		"Eru":                                    {eru, "a", spec{"deploymentName": "web"}},
		"Eru by its name":                        {eru, "web", spec{}},
		"Eru of another":                         {eru, "web", spec{"deploymentName": "other"}},
		"Eru by the deprecated field":            {eru, "a", spec{"deploymentname": "web"}},
		"Eru of another by the deprecated field": {eru, "web", spec{"deploymentname": "other"}},
		"Eru of another beside an empty name":    {eru, "web", spec{"deploymentName": "", "deploymentname": "other"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := user(t, "needs-"+name, nil, kindsRole, test.rules)
			for what, obj := range objects {
				want := byRequester
				if test.allowed[what] {
					want = allowed
				}
				if got, err := tried(t, c, obj.kind, obj.name, obj.spec); got != want {
					t.Errorf("%s: %s, want %s (%v)", what, got, want, err)
				}
			}
		})
	}
}

// A user who may restart one Deployment cannot point an Eru at another one by an update of the
// deprecated field, also where no webhook derives deploymentName.
func TestDeprecatedFieldOfEru(t *testing.T) {
	t.Parallel()
	c := user(t, "deprecated", nil, kindsRole, []rbacv1.PolicyRule{named(rule("apps", []string{"patch"}, "deployments"), "web")})
	admin, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	const invalid = outcome("invalid")
	for i, test := range []struct {
		stored spec
		patch  string
		want   outcome
	}{
		{spec{"deploymentname": "web"}, `{"enabled":true}`, allowed},
		{spec{"deploymentname": "web"}, `{"deploymentname":"other"}`, byRequester},
		{spec{"deploymentname": "web"}, `{"deploymentname":null}`, byRequester}, // It is the name of the object then.
		{spec{"deploymentname": "web"}, `{"deploymentName":"","deploymentname":"other"}`, byRequester},
		{spec{"deploymentname": "web", "deploymentName": "web"}, `{"deploymentName":null,"deploymentname":"other"}`, byRequester},
		{spec{"deploymentname": "other"}, `{"deploymentname":"web"}`, allowed},
		{spec{"deploymentName": "web"}, `{"deploymentname":"web"}`, allowed},
		{spec{"deploymentName": "web"}, `{"deploymentname":"other"}`, invalid},
		{spec{"deploymentName": "web", "deploymentname": "web"}, `{"deploymentname":"other"}`, invalid},
	} {
		name := fmt.Sprintf("eru-%d", i)
		store(t, eru.in(admin, c.namespace), eru.object(name, test.stored), false)
		_, err := eru.in(c, c.namespace).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":`+test.patch+`}`), metav1.PatchOptions{})
		got := outcomeOf(err)
		if apierrors.IsInvalid(err) && strings.Contains(err.Error(), "spec.deploymentname: Invalid value") && strings.Contains(err.Error(), "remove deploymentname") {
			got = invalid
		}
		if got != test.want {
			t.Errorf("%v patched with %s: %s, want %s (%v)", test.stored, test.patch, got, test.want, err)
		}
	}
}

// Rights in another namespace do not count.
func TestRightsOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	c := user(t, "elsewhere-a", nil, kindsRole)
	other := user(t, "elsewhere-b", nil)
	if err := bind(t.Context(), other.namespace, c.namespace, "edit", delegatedRole); err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		if got, err := tried(t, c, k, "a", k.spec); got != byRequester {
			t.Errorf("%s: %s, want %s (%v)", k.name, got, byRequester, err)
		}
	}
}

// The error names the user, the right, the namespace and the ways out.
func TestMessages(t *testing.T) {
	t.Parallel()
	c := user(t, "messages", nil, kindsRole, []rbacv1.PolicyRule{rule("apps", []string{"create"}, "deployments")})
	const ways = "; ask for a role in this namespace that allows it, such as edit, or for the verb use on "
	for k, want := range map[*kind]string{
		&modelBox:         " may not create services in namespace " + c.namespace + ", which this ModelBox makes for its ports" + ways + "modelboxes." + virtualGroup,
		&genericdaemon:    " may not create daemonsets.apps in namespace " + c.namespace + ", which this Genericdaemon makes" + ways + "genericdaemons." + virtualGroup,
		&unitedDeployment: " may not patch deployments.apps/scale of web in namespace " + c.namespace + ", which this UnitedDeployment scales" + ways + "uniteddeployments." + virtualGroup,
		&eru:              " may not patch deployments.apps web in namespace " + c.namespace + ", which this Eru restarts" + ways + "erus." + virtualGroup,
	} {
		_, err := tried(t, c, *k, "a", k.spec)
		if err == nil || !strings.HasSuffix(err.Error(), " denied request: "+c.namespace+want) {
			t.Errorf("%s:\n%v\nwant\n%s", k.name, err, want)
		}
	}
}

// A request cannot set deletionTimestamp, neither when it creates an object nor later, and
// so cannot pass as one for an object that is being deleted.
func TestForgedDeletion(t *testing.T) {
	t.Parallel()
	c := user(t, "forged", nil, kindsRole)
	admin, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	obj := modelBox.object("new", modelBox.spec)
	now := metav1.Now()
	obj.SetDeletionTimestamp(&now)
	if _, err := modelBox.in(c, c.namespace).Create(t.Context(), obj, metav1.CreateOptions{}); outcomeOf(err) != byRequester {
		t.Errorf("create: %v", err)
	}
	stored := store(t, modelBox.in(admin, c.namespace), modelBox.object("stored", modelBox.spec), false)
	patch := `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z","deletionGracePeriodSeconds":0},"spec":{"image":"b:1"}}`
	if _, err := modelBox.in(c, c.namespace).Patch(t.Context(), "stored", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err == nil {
		t.Error("a patch set deletionTimestamp and the spec")
	}
	expectUnchanged(t, admin, stored)
}

func expectUnchanged(t *testing.T, admin dynamic.Interface, stored *unstructured.Unstructured) {
	t.Helper()
	now, err := modelBox.in(admin, stored.GetNamespace()).Get(t.Context(), stored.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if now.GetResourceVersion() != stored.GetResourceVersion() {
		t.Errorf("the object has changed: %v", now.Object)
	}
}

// A write through the status or the scale subresource changes no other field of the spec.
func TestSubresourcesChangeNoOtherField(t *testing.T) {
	t.Parallel()
	c := user(t, "subresources", nil, kindsRole)
	admin, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	store(t, modelBox.in(admin, c.namespace), modelBox.object("a", modelBox.spec), false)
	for _, sub := range []string{"status", "scale"} {
		patch := `{"spec":{"image":"evil:1","podTemplate":{"spec":{"hostNetwork":true}}},"status":{"replicas":1}}`
		if _, err := modelBox.in(c, c.namespace).Patch(t.Context(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub); err != nil {
			t.Log(sub, err) // Either answer is correct.
		}
		now, err := modelBox.in(admin, c.namespace).Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		image, _, _ := unstructured.NestedString(now.Object, "spec", "image")
		_, template, _ := unstructured.NestedMap(now.Object, "spec", "podTemplate")
		if image != "nginx:1" || template {
			t.Errorf("through %s the spec became %v", sub, now.Object["spec"])
		}
	}
}

// The controller's own requests pass: it creates Erus with the rights of its ClusterRole.
func TestControllerCreatesErus(t *testing.T) {
	t.Parallel()
	const account = "system:serviceaccount:modelbox-system:modelbox-controller"
	rules := clusterRole(t, filepath.Join(testenv.Root(), "config", "controller", "generated", "role.yaml"))
	c := user(t, "controller", nil)
	if err := bind(t.Context(), c.namespace, account, rules); err != nil {
		t.Fatal(err)
	}
	controller, err := as(account)
	if err != nil {
		t.Fatal(err)
	}
	// As it creates them: for the Deployment of its name, which owns it.
	object := eru.object("web", spec{"deploymentName": "web"})
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1"}})
	created, err := eru.in(tenant{controller, c.namespace}, c.namespace).Create(t.Context(), object, metav1.CreateOptions{DryRun: dryRun})
	if got := outcomeOf(err); got != allowed {
		t.Errorf("%s: %v %v", got, created, err)
	}
}
