// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/cli/rollout"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	const base = `{spec: {containers: [{name: web, image: a:1}, {name: side, image: b:1}]}}`
	for name, tc := range map[string]struct {
		from, to string
		spec     map[string]any
		others   []string
	}{
		"nothing": {base, base, map[string]any{}, nil},
		"what always differs": {
			`{metadata: {labels: {a: b, pod-template-hash: x}, annotations: {kubectl.kubernetes.io/restartedAt: t}}, spec: {containers: [{name: web}]}}`,
			`{metadata: {labels: {a: b, pod-template-hash: z}}, spec: {containers: [{name: web}]}}`, map[string]any{}, nil,
		},
		"all fields": {
			base, `{spec: {containers: [{name: web, image: a:2, command: [c], args: [d], env: [{name: E, value: f}], envFrom: [{secretRef: {name: g}}],
resources: {limits: {cpu: 1}}}, {name: side, image: b:1}]}}`,
			map[string]any{
				"image": "a:2", "command": []any{"c"}, "args": []any{"d"}, "envs": []any{map[string]any{"name": "E", "value": "f"}},
				"envFrom":   []any{map[string]any{"secretRef": map[string]any{"name": "g"}}},
				"resources": map[string]any{"limits": map[string]any{"cpu": "1"}},
			}, nil,
		},
		"removed fields": {
			`{spec: {containers: [{name: web, image: a:1, args: [a], env: [{name: E}]}]}}`, `{spec: {containers: [{name: web, image: a:1}]}}`,
			map[string]any{"args": nil, "envs": nil}, nil,
		},
		"other notations of one quantity": {
			`{spec: {containers: [{name: web, resources: {limits: {cpu: 1000m}}}]}}`, `{spec: {containers: [{name: web, resources: {limits: {cpu: "1"}}}]}}`,
			map[string]any{}, nil,
		},
		"more": {
			base, `{metadata: {annotations: {a.b/c: d}}, spec: {nodeSelector: {x: z}, containers: [{name: web, image: a:2, workingDir: /}, {name: side, image: b:2}]}}`,
			map[string]any{"image": "a:2"},
			[]string{"+    a.b/c: d", "+    workingDir: /", "-  - image: b:1", "+  - image: b:2", "+  nodeSelector:", "+    x: z"},
		},
		"the container that fetches a model follows": {
			fetching("{limits: {cpu: 1}}", "--uri=https://a/b, --mirror=https://a=https://b"), fetching("{limits: {cpu: 2}}", "--uri=https://a/b"),
			map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": "2"}}}, nil,
		},
		"another model": {
			fetching("{}", "--uri=https://a/b"), fetching("{}", "--uri=https://a/c"),
			map[string]any{}, []string{"-    - --uri=https://a/b", "+    - --uri=https://a/c"},
		},
		"another number of containers": {base, `{spec: {containers: [{name: web, image: a:1}]}}`, map[string]any{}, []string{"-  - image: b:1", "-    name: side"}},
		"another name":                 {base, `{spec: {containers: [{name: main, image: a:1}]}}`, map[string]any{"image": nil}, []string{"-  - name: web", "+    name: main"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var from, to corev1.PodTemplateSpec
			ruletest.Read(t, tc.from, &from)
			ruletest.Read(t, tc.to, &to)
			spec, others, err := rollout.Changes(&from, &to, "web")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.spec, spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			for _, line := range tc.others {
				if !strings.Contains(others, "\n"+line+"\n") {
					t.Errorf("%q is not in the others:\n%s", line, others)
				}
			}
			if tc.others == nil && others != "" {
				t.Errorf("others:\n%s", others)
			}
		})
	}
}

// fetching is a pod template that fetches a model, with the resources of the main container and
// the arguments of the one that fetches.
func fetching(resources, args string) string {
	return `{spec: {containers: [{name: web, resources: ` + resources + `}],
initContainers: [{name: fetch-model, image: "c:` + resources[1:2] + `", command: [/fetch-model], args: [` + args + `], resources: ` + resources + `}]}}`
}

func TestOwners(t *testing.T) {
	t.Parallel()
	entry := func(manager, operation, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	const image, envs = `{"f:spec":{"f:image":{}}}`, `{"f:spec":{"f:envs":{"k:{\"name\":\"A\"}":{".":{},"f:name":{}}}}}`
	status := entry("modelbox-controller", "Apply", image)
	status.Subresource = "status"
	for name, tc := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		want  []string
	}{
		"kubectl edit":           {entry("kubectl-edit", "Update", image), nil},
		"server-side apply":      {entry("kubectl", "Apply", image), []string{`field manager "kubectl" owns spec.image`}},
		"a part of a field":      {entry("ci", "Apply", envs), []string{`field manager "ci" owns spec.envs`}},
		"Argo CD":                {entry("argocd-controller", "Update", image), []string{`field manager "argocd-controller" owns spec.image`}},
		"Flux":                   {entry("kustomize-controller", "Update", envs), []string{`field manager "kustomize-controller" owns spec.envs`}},
		"other fields":           {entry("kubectl", "Apply", `{"f:spec":{"f:replicas":{}}}`), nil},
		"this command":           {entry("modelbox-cli", "Apply", image), nil},
		"the status subresource": {status, nil},
		"no fields":              {metav1.ManagedFieldsEntry{Manager: "a", Operation: "Apply"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := rollout.Owners([]metav1.ManagedFieldsEntry{tc.entry}, []string{"image", "envs"}, "modelbox-cli")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
