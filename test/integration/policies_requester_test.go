// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// Each permission allows the kinds that need it and no other, and each kind needs no other.
func TestNeededPermissions(t *testing.T) {
	t.Parallel()
	objects := map[string]struct{ name, text string }{
		"box": {"a", `{image: "a:1"}`}, "box with ports": {"a", `{image: "a:1", ports: [{port: 80}]}`},
		"box with a route": {"a", box(`ports: [{port: 80}], route: {hosts: [a.example.com], gateway: {name: a}}`)},
		"app with metrics": {"a", `App {image: "a:1", monitoring: {port: 80}}`},
		"app":              {"a", `App {image: "a:1", ports: []}`}, "app with ports": {"a", `App {image: "a:1", ports: [{port: 80}]}`},
		"scaled app":              {"a", `App {image: "a:1", autoscaling: {maxReplicas: 2}}`},
		"app scaled by KEDA":      {"a", `App {image: "a:1", autoscaling: {maxReplicas: 2, prometheus: {serverAddress: "http://a", query: a, target: 1}}}`},
		"app by another's metric": {"a", `App {image: "a:1", autoscaling: {maxReplicas: 2, metrics: [{type: External, external: {metric: {name: a}, target: {type: Value, value: "1"}}}]}}`},
		"app by an object's metric": {"a", `App {image: "a:1", autoscaling: {maxReplicas: 2, metrics: [{type: Object, object: {metric: {name: a}, target: {type: Value, value: "1"},
  describedObject: {kind: Ingress, name: a}}}]}}`},
		"daemon":                      {"a", `Genericdaemon {image: "a:1"}`},
		"united":                      {"a", `UnitedDeployment {deploymentName: web, replicas: 0}`},
		"united of another":           {"web", `UnitedDeployment {deploymentName: other, replicas: 0}`},
		"eru":                         {"a", `Eru {deploymentName: web}`},
		"eru by name":                 {"web", `Eru {}`},
		"eru of another":              {"web", `Eru {deploymentName: other}`},
		"eru by the old field":        {"a", `Eru {deploymentname: web}`},
		"another by the old field":    {"web", `Eru {deploymentname: other}`},
		"another beside an empty one": {"web", `Eru {deploymentName: "", deploymentname: other}`},
	}
	creates := func(resources ...string) rbacv1.PolicyRule { return rule("apps", []string{"create"}, resources...) }
	services := rule("", []string{"create"}, "services")
	autoscalers, scaledObjects := rule("autoscaling", []string{"create"}, "horizontalpodautoscalers"), rule("keda.sh", []string{"create"}, "scaledobjects")
	for name, test := range map[string]struct {
		rules   []rbacv1.PolicyRule
		allowed []string
	}{
		"none":        {nil, nil},
		"deployments": {[]rbacv1.PolicyRule{creates("deployments")}, []string{"box", "app"}},
		"services":    {[]rbacv1.PolicyRule{services}, nil},
		"both":        {[]rbacv1.PolicyRule{creates("deployments"), services}, []string{"box", "app", "box with ports", "app with ports"}},
		"autoscalers": {[]rbacv1.PolicyRule{creates("deployments"), autoscalers}, []string{"box", "app", "scaled app", "app by another's metric", "app by an object's metric"}},
		"use-beside-deployments": {
			[]rbacv1.PolicyRule{creates("deployments"), rule(virtualGroup, []string{"use"}, "apps")}, []string{"box", "app", "app with ports", "scaled app"}},
		"KEDA":           {[]rbacv1.PolicyRule{creates("deployments"), scaledObjects}, []string{"box", "app", "app scaled by KEDA"}},
		"daemonsets":     {[]rbacv1.PolicyRule{creates("daemonsets")}, []string{"daemon"}},
		"updates":        {[]rbacv1.PolicyRule{rule("apps", []string{"update", "get", "delete"}, "*")}, nil},
		"extensions":     {[]rbacv1.PolicyRule{rule("extensions", every, "*")}, nil},
		"statefulsets":   {[]rbacv1.PolicyRule{rule("apps", every, "statefulsets", "replicasets", "deployments/status")}, nil},
		"one-scale":      {[]rbacv1.PolicyRule{named(rule("apps", []string{"patch"}, "deployments/scale"), "web")}, []string{"united"}},
		"one-deployment": {[]rbacv1.PolicyRule{named(rule("apps", []string{"patch"}, "deployments"), "web")}, []string{"eru", "eru by name", "eru by the old field"}},
		"all-scales":     {[]rbacv1.PolicyRule{rule("apps", []string{"patch"}, "deployments/scale")}, []string{"united", "united of another"}},
		"routes": {
			[]rbacv1.PolicyRule{creates("deployments"), services, rule("gateway.networking.k8s.io", []string{"create"}, "httproutes")},
			[]string{"box", "app", "box with ports", "app with ports", "box with a route"}},
		"monitors": {
			[]rbacv1.PolicyRule{creates("deployments"), rule("monitoring.coreos.com", []string{"create"}, "podmonitors")},
			[]string{"box", "app", "app with metrics"}},
		// Not apps: which of two policies that refuse a request is reported is not defined.
		"another-kind": {[]rbacv1.PolicyRule{rule(virtualGroup, []string{"use"}, "genericdaemons")}, []string{"daemon"}},
		"another-verb": {[]rbacv1.PolicyRule{rule(virtualGroup, []string{"create", "get", "update", "patch"}, "*")}, nil},
		"everything":   {[]rbacv1.PolicyRule{rule("apps", every, "*"), services, rule("gateway.networking.k8s.io", every, "*"), rule("monitoring.coreos.com", every, "*"), autoscalers, scaledObjects}, sets.KeySet(objects).UnsortedList()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := user(t, "needs-"+strings.ToLower(name), nil, kindsRole, test.rules)
			for what, obj := range objects {
				want := byRequester
				if sets.New(test.allowed...).Has(what) {
					want = allowed
				}
				k, s := parse(t, obj.text)
				if got, err := tried(t, c, k, obj.name, s); got != want {
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
		store(t, eru.in(admin(t), c.namespace), eru.object(name, test.stored), false)
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

// Permissions in another namespace do not count.
func TestPermissionsInAnotherNamespace(t *testing.T) {
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

// The error names the user, the permission, the namespace and the ways out.
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
	obj := modelBox.object("new", modelBox.spec)
	now := metav1.Now()
	obj.SetDeletionTimestamp(&now)
	if _, err := modelBox.in(c, c.namespace).Create(t.Context(), obj, metav1.CreateOptions{}); outcomeOf(err) != byRequester {
		t.Errorf("create: %v", err)
	}
	before := store(t, modelBox.in(admin(t), c.namespace), modelBox.object("stored", modelBox.spec), false)
	patch := `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z","deletionGracePeriodSeconds":0},"spec":{"image":"b:1"}}`
	if _, err := modelBox.in(c, c.namespace).Patch(t.Context(), "stored", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err == nil {
		t.Error("a patch set deletionTimestamp and the spec")
	}
	after, err := modelBox.in(admin(t), c.namespace).Get(t.Context(), "stored", metav1.GetOptions{})
	if err != nil || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the object has changed: %v (%v)", after, err)
	}
}

// A write through the status or the scale subresource changes no other field of the spec.
func TestSubresourcesChangeNoOtherField(t *testing.T) {
	t.Parallel()
	c := user(t, "subresources", nil, kindsRole)
	store(t, modelBox.in(admin(t), c.namespace), modelBox.object("a", modelBox.spec), false)
	for _, sub := range []string{"status", "scale"} {
		patch := `{"spec":{"image":"evil:1","podTemplate":{"spec":{"hostNetwork":true}}},"status":{"replicas":1}}`
		if _, err := modelBox.in(c, c.namespace).Patch(t.Context(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub); err != nil {
			t.Log(sub, err) // Either answer is correct.
		}
		now, err := modelBox.in(admin(t), c.namespace).Get(t.Context(), "a", metav1.GetOptions{})
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

// The controller's own requests pass: it creates Erus with the permissions of its ClusterRole, for
// the Deployment of their name, which owns them.
func TestControllerCreatesErus(t *testing.T) {
	t.Parallel()
	account := testenv.ServiceAccount("modelbox-system", "modelbox-controller")
	file, err := os.Open(filepath.Join(testenv.Root(), "config", "controller", "generated", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var shipped rbacv1.ClusterRole
	if err := utilyaml.NewYAMLOrJSONDecoder(file, 4096).Decode(&shipped); err != nil {
		t.Fatal(err)
	}
	c := user(t, "controller", nil)
	if err := bind(t.Context(), c.namespace, account, shipped.Rules); err != nil {
		t.Fatal(err)
	}
	controller, err := as(account)
	if err != nil {
		t.Fatal(err)
	}
	object := eru.object("web", spec{"deploymentName": "web"})
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1"}})
	created, err := eru.in(controller, c.namespace).Create(t.Context(), object, metav1.CreateOptions{DryRun: dryRun, FieldManager: "modelbox-eru"})
	if got := outcomeOf(err); got != allowed {
		t.Errorf("%s: %v %v", got, created, err)
	}
}

// naming are specs of each kind that name a Secret which containers read, in each place.
var naming = []string{
	`{image: "a:1", envs: [{name: A, valueFrom: {secretKeyRef: {name: db, key: a}}}]`,
	`{image: "a:1", envFrom: [{secretRef: {name: db}}]`,
	`App {image: "a:1", envFrom: [{secretRef: {name: db}}]`,
	`Genericdaemon {image: "a:1", envs: [{name: A, valueFrom: {secretKeyRef: {name: db, key: a}}}]`,
	`{image: "a:1", podTemplate: {spec: {containers: [{name: a, env: [{name: A, value: b}, {name: B, valueFrom: {secretKeyRef: {name: db, key: a}}}]}]}}`,
	`{image: "a:1", podTemplate: {spec: {initContainers: [{name: a, envFrom: [{configMapRef: {name: a}}, {secretRef: {name: db}}]}]}}`,
	`{image: "a:1", podTemplate: {spec: {volumes: [{name: v, secret: {secretName: db}}]}}`,
	`{image: "a:1", podTemplate: {spec: {volumes: [{name: v, projected: {sources: [{configMap: {name: a}}, {secret: {name: db}}]}}]}}`,
}

// notNaming are specs that name none.
var notNaming = []string{
	`{image: "a:1"`, `App {image: "a:1", envFrom: [{configMapRef: {name: db}}]`,
	`{image: "a:1", podTemplate: {spec: {imagePullSecrets: [{name: db}], volumes: [{name: v, configMap: {name: db}}]}}`,
	`{image: "a:1", model: {uri: s3://bucket/key, credentials: {name: db}}`,
}

// A user who may create workloads, but not get Secrets, may use them, and not have their changes shown.
func TestRestartsOnChangedSecrets(t *testing.T) {
	t.Parallel()
	workloads := rule("apps", []string{"create"}, "deployments", "daemonsets")
	without := user(t, "restarts", nil, kindsRole, []rbacv1.PolicyRule{workloads})
	one := user(t, "restarts-one", nil, kindsRole, []rbacv1.PolicyRule{workloads, named(rule("", []string{"get"}, "secrets"), "db")})
	all := user(t, "restarts-all", nil, kindsRole, []rbacv1.PolicyRule{workloads, rule("", []string{"get"}, "secrets")})
	delegated := user(t, "restarts-delegated", map[string]string{virtualGroup + "/secrets": "db", virtualGroup + "/config-maps": "a, db"}, kindsRole, delegatedRole)
	const message = "may not get secrets"
	for _, text := range naming {
		for _, value := range []string{`}`, `, restartOnChange: None}`} {
			check(t, without, text+value, allowed, "")
		}
		const referenced = `, restartOnChange: Referenced}`
		check(t, without, text+referenced, byRequester, message)
		check(t, one, text+referenced, byRequester, message)
		check(t, all, text+referenced, allowed, "")
		check(t, delegated, text+referenced, allowed, "")
	}
	for _, text := range notNaming {
		check(t, without, text+`, restartOnChange: Referenced}`, allowed, "")
	}
}
