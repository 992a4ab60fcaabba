// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/app"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

func read(t *testing.T, spec string) *appv1.App {
	t.Helper()
	obj := &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &obj.Spec); err != nil {
		t.Fatal(err)
	}
	app.Default(obj, nil, nil)
	return obj
}

// The rules of the fields that an App shares with a ModelBox are in force at its own paths.
// What a rule says in detail is tested with the rules.
func TestValidate(t *testing.T) {
	t.Parallel()
	const once = `: Forbidden: may be set in one place only: remove it here, or remove spec.`
	for name, tc := range map[string]struct{ spec, want string }{
		"all fields": {`
{image: a:1, imagePullPolicy: Always, imagePullSecrets: [{name: a}], command: [a], args: [b], envFrom: [{secretRef: {name: a}}], progressDeadlineSeconds: 1}`, ``},
		"imagePullPolicy": {
			`{image: a:1, imagePullPolicy: a}`,
			`spec.imagePullPolicy: Unsupported value: "a": supported values: "Always", "IfNotPresent", "Never"`,
		},
		"imagePullSecrets": {`{image: a:1, imagePullSecrets: [{name: a}, {name: a}]}`, `spec.imagePullSecrets[1].name: Duplicate value: "a"`},
		"command": {
			`{image: a:1, command: [` + strings.Repeat("a,", 1025) + `]}`, `spec.command: Too many: 1025: must have at most 1024 items`,
		},
		"args": {`{image: a:1, args: [` + strings.Repeat("a,", 1025) + `]}`, `spec.args: Too many: 1025: must have at most 1024 items`},
		"envFrom": {
			`{image: a:1, envFrom: [{}]}`, "spec.envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
		},
		"progressDeadlineSeconds": {
			`{image: a:1, progressDeadlineSeconds: 0}`, `spec.progressDeadlineSeconds: Invalid value: 0: must be from 1 to 86400`,
		},
		"fields in two places": {`
image: a:1
command: [a]
args: [a]
imagePullPolicy: Never
imagePullSecrets: [{name: a}]
envFrom: [{secretRef: {name: a}}]
podTemplate:
  spec:
    imagePullSecrets: [{name: b}]
    containers: [{name: web, command: [b], args: [b], imagePullPolicy: Never, envFrom: [{secretRef: {name: b}}]}]`, `
spec.podTemplate.spec.imagePullSecrets` + once + `imagePullSecrets
spec.podTemplate.spec.containers[0].imagePullPolicy` + once + `imagePullPolicy
spec.podTemplate.spec.containers[0].command` + once + `command
spec.podTemplate.spec.containers[0].args` + once + `args
spec.podTemplate.spec.containers[0].envFrom` + once + `envFrom`},
		"fields in podTemplate": {`
image: a:1
podTemplate:
  spec:
    imagePullSecrets: [{name: b}]
    containers: [{name: web, command: [b], args: [b], imagePullPolicy: Never, envFrom: [{secretRef: {name: b}}]}]`, ``},
		"an error in podTemplate": {
			`{image: a:1, podTemplate: {spec: {containers: [{name: web, imagePullPolicy: never}]}}}`,
			`spec.podTemplate.spec.containers[0].imagePullPolicy: Unsupported value: "never": supported values: "Always", "IfNotPresent", "Never"`,
		},
	} {
		if got := ruletest.Lines(app.Validate(read(t, tc.spec))); got != strings.TrimSpace(tc.want) {
			t.Errorf("%s: errors:\n%s\nwant:\n%s", name, got, tc.want)
		}
	}
}

func TestWarn(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string][]string{
		`{image: a:1}`: nil,
		`{image: a}`:   {"spec.image: has no tag; use a version tag or spec.imagePullPolicy: IfNotPresent"},
		`{image: a:latest, imagePullPolicy: Always}`: {"spec.image: the image of tag latest can change; use a version tag or a digest"},
	} {
		if diff := cmp.Diff(want, app.Warn(read(t, spec))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
}
