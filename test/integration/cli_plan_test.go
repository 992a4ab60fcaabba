// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/plan"
)

// A user who may write the objects, and only read their children, gets the plan, and learns what the API server
// could not be asked for, and what was not visible.
func TestPlan(t *testing.T) {
	c := newCluster(t)
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"model.github.com"}, Resources: []string{"modelboxes"}, Verbs: []string{"get", "list", "create", "patch"}},
		{APIGroups: []string{virtualGroup}, Resources: []string{"modelboxes"}, Verbs: []string{"use"}},
		{APIGroups: []string{"app.huolala.cn", "extension.k8s.io", "mtsre.meitu.com"}, Resources: []string{"apps", "uniteddeployments", "erus"}, Verbs: []string{"list"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get"}},
	}
	if err := bind(ctx, c.namespace, c.namespace, rules); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: c.namespace, Groups: []string{"system:authenticated"}}
	reader, err := client.NewWithWatch(config, client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	c.client = reader
	const manifest = "apiVersion: model.github.com/v1\nkind: ModelBox\nmetadata: {name: web}\nspec: {image: 'nginx:2', replicas: 2}\n"
	const note = `its Deployment is compared as the operator builds it: deployments.apps is forbidden: User "NS" cannot create resource "deployments" in API group "apps" in the namespace "NS"`
	hidden := "not considered: reading whether namespace \"NS\" is frozen: namespaces \"NS\" is forbidden: User \"NS\" cannot get resource \"namespaces\" in API group \"\" in the namespace \"NS\"\n" +
		"not considered: horizontalpodautoscalers.autoscaling is forbidden: User \"NS\" cannot list resource \"horizontalpodautoscalers\" in API group \"autoscaling\" in the namespace \"NS\"\n"
	file := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	got := c.run("plan", "-f", filepath.Dir(file))
	text, diff, _ := strings.Cut(got.out, "\n\n")
	want(t, result{text + "\n", got.err, got.code}, result{"modelbox/web: is created\nmodelbox/web: scales from 0 to 2 pods\nmodelbox/web: note: " + note + "\n" + hidden, "", 1})
	for _, line := range []string{"\n+++ ModelBox/web (desired)\n", "\n+kind: ModelBox\n", "\n+kind: Deployment\n", "\n+  replicas: 2\n"} {
		if !strings.Contains(diff, line) {
			t.Errorf("%q is not in\n%s", line, diff)
		}
	}

	// It is stored by the user's apply, and its Deployment is that of the plan.
	c.client = env.Client
	if _, err := env.Kubectl(manifest, "apply", "-n", c.namespace, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if got := c.run("plan", "-f", file); got.code != 1 || strings.Contains(got.out, "not considered") {
		t.Errorf("got %+v", got)
	}
	c.client = reader
	got = c.run("plan", "-f", file, "-o", "json")
	var decoded plan.Plan
	if err := json.Unmarshal([]byte(got.out), &decoded); err != nil {
		t.Fatal(err)
	}
	if len(decoded.Hidden) != 2 || len(decoded.Objects) != 1 || !strings.Contains(decoded.Objects[0].Diff, "kind: Deployment") || got.code != 1 {
		t.Fatalf("got %+v", got)
	}
	decoded.Objects[0].Diff = ""
	planned := `{"kind":"ModelBox","namespace":"NS","name":"web","change":"configured","scale":{"from":0,"to":2},"notes":[` + strconv.Quote(note) + `]}`
	if text, err := json.Marshal(decoded.Objects[0]); err != nil || string(text) != planned {
		t.Errorf("%v: got %s", err, text)
	}

	for name, tc := range map[string]struct {
		stdin string
		args  []string
		err   string
	}{
		"a refused update":     {strings.Replace(manifest, "replicas: 2", "replicas: -1", 1), nil, "<stdin>:1: ModelBox \"web\": ModelBox.model.github.com \"web\" is invalid: [spec.replicas: Invalid value: -1"},
		"a refused creation":   {strings.Replace(manifest, "web", "Web", 1), nil, "metadata.name"},
		"an unknown field":     {strings.Replace(manifest, "replicas", "replica", 1), nil, "unknown field \"spec.replica\""},
		"an unknown kind":      {"apiVersion: model.github.com/v1\nkind: Box", nil, "no matches for kind \"Box\""},
		"no YAML":              {"a: [", nil, "cannot be parsed"},
		"no file":              {"", []string{"-f", "none.yaml"}, "no such file"},
		"a conflict of owners": {strings.Replace(manifest, "nginx:2", "nginx:3", 1), []string{"--server-side", "--field-manager", "ci"}, "conflict with \"kubectl-client-side-apply\""},
		"another flag":         {manifest, []string{"--force-conflicts"}, "needs --server-side"},
	} {
		c.stdin = tc.stdin
		got := c.run(append([]string{"plan", "-f", "-"}, tc.args...)...)
		if got.code != 3 || got.out != "" || !strings.Contains(got.err, tc.err) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	c.stdin = strings.Replace(manifest, "nginx:2", "nginx:3", 1)
	if got := c.run("plan", "-f", "-", "--server-side", "--field-manager", "ci", "--force-conflicts"); got.code != 1 || !strings.Contains(got.out, "\n+  image: nginx:3\n") {
		t.Errorf("got %+v", got)
	}
	if got := c.run("plan"); got.code != 3 || !strings.Contains(got.err, "name what to plan") {
		t.Errorf("got %+v", got)
	}
}

// The warnings of the API server are printed as kubectl prints them, each once.
func TestPlanWarns(t *testing.T) {
	kubeconfig, err := env.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	c.client, c.stdin = nil, "apiVersion: model.github.com/v1\nkind: ModelBox\nmetadata: {name: web, finalizers: [old]}\nspec: {image: 'nginx:2'}\n"
	got := c.run("plan", "-f", "-", "--kubeconfig", kubeconfig)
	if got.code != 1 || strings.Count(got.err, "Warning: metadata.finalizers: ") != 1 || !strings.Contains(got.out, "modelbox/web: is created\n") {
		t.Errorf("got %+v", got)
	}
}

// A child of a block is deleted with the block. What the cluster does not have, or the user may not read, is named.
func TestPlanOfBlocks(t *testing.T) {
	c := newCluster(t)
	const manifest = "apiVersion: model.github.com/v1\nkind: ModelBox\nmetadata: {name: web}\nspec:\n  image: nginx:2\n  replicas: 2\n  ports: [{port: 80}]\n"
	if _, err := env.Kubectl(manifest+"  disruption: {maxUnavailable: 1}\n", "apply", "-n", c.namespace, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	box := &modelv1.ModelBox{}
	if err := env.Client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: "web"}, box); err != nil {
		t.Fatal(err)
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web", OwnerReferences: []metav1.OwnerReference{
		*metav1.NewControllerRef(box, modelv1.SchemeGroupVersion.WithKind("ModelBox"))}}}
	if err := env.Client.Create(ctx, budget); err != nil {
		t.Fatal(err)
	}
	for block, planned := range map[string]string{
		"": "\n-kind: PodDisruptionBudget\n",
		"  disruption: {minAvailable: 1}\n  route: {hosts: [a.example.com], gateway: {name: a}}\n": "what becomes of its HTTPRoute is not known: no matches for kind",
	} {
		file := filepath.Join(t.TempDir(), "web.yaml")
		if err := os.WriteFile(file, []byte(manifest+block), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := c.run("plan", "-f", file); got.code != 1 || !strings.Contains(got.out, planned) || got.err != "" {
			t.Errorf("%q: %q is not in %+v", block, planned, got)
		}
	}
}
