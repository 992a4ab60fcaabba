// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
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
	app.Default(obj)
	return obj
}

// The rules of the fields that an App shares with a ModelBox are in force at its own paths.
// What a rule says in detail is tested with the rules.
func TestValidate(t *testing.T) {
	t.Parallel()
	const noLabel = `a valid label must be an empty string or consist of alphanumeric characters, ` +
		`'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`
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
			`{image: a:1, progressDeadlineSeconds: 0}`, `spec.progressDeadlineSeconds: Invalid value: 0: must be between 1 and 86400, inclusive`,
		},
		"scheduling": {
			`{image: a:1, scheduling: {tolerations: [{key: a, effect: Never}]}}`,
			`spec.scheduling.tolerations[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
		},
		"podMetadata in two places": {`
image: a:1
podMetadata: {labels: {a: b, c: d, e: f}, annotations: {g: h, i: j}}
scheduling: {podLabels: {c: d}}
podTemplate: {metadata: {labels: {a: b}, annotations: {g: h}}}`, `
spec.podTemplate.metadata.labels[a]` + once + `podMetadata.labels[a]
spec.scheduling.podLabels[c]` + once + `podMetadata.labels[c]
spec.podTemplate.metadata.annotations[g]` + once + `podMetadata.annotations[g]`},
		"a label in two places, wrong in each": {
			`{image: a:1, podMetadata: {labels: {a: "b "}}, podTemplate: {metadata: {labels: {a: "c "}}}}`, `
spec.podMetadata.labels[a]: Invalid value: "b ": ` + noLabel + `
spec.podTemplate.metadata.labels[a]` + once + `podMetadata.labels[a]
spec.podTemplate.metadata.labels: Invalid value: "c ": ` + noLabel},
		"podMetadata is judged once": {
			`{image: a:1, podMetadata: {labels: {a: "b ", app.kubernetes.io/instance: web}, annotations: {a b: c}}, podTemplate: {metadata: {labels: {f: "g "}}}}`,
			`
spec.podMetadata.labels[a]: Invalid value: "b ": ` + noLabel + `
spec.podMetadata.labels[app.kubernetes.io/instance]: Forbidden: may not be set, because the operator sets this label, or selects pods by it; remove it
spec.podMetadata.annotations[a b]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
spec.podTemplate.metadata.labels: Invalid value: "g ": ` + noLabel},
		"annotations too long together": {
			`{image: a:1, podMetadata: {annotations: {a: "` + strings.Repeat("b", 200<<10) + `"}}, podTemplate: {metadata: {annotations: {c: "` + strings.Repeat("d", 100<<10) + `"}}}}`,
			`spec.podMetadata.annotations: Too long: may not be more than 262144 bytes`,
		},
		"service": {
			`{image: a:1, ports: [{port: 80}], minReadySeconds: 60, progressDeadlineSeconds: 60, service: {sessionAffinity: A, externalTrafficPolicy: Local}}`, `
spec.minReadySeconds: Invalid value: 60: must be less than progressDeadlineSeconds, which is 60; set that to more
spec.service.sessionAffinity: Unsupported value: "A": supported values: "ClientIP", "None"
spec.service.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services; change the type of the Service, or remove this field`},
		"a service with a node port": {`{image: a:1, ports: [{port: 80, nodePort: 30080}], service: {externalTrafficPolicy: Local}}`, ``},
		"scheduling in two places": {
			`{image: a:1, scheduling: {nodeSelector: {a: b}}, podTemplate: {spec: {nodeSelector: {c: d}}}}`,
			`spec.podTemplate.spec.nodeSelector` + once + `scheduling.nodeSelector`,
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
		"name":                      {`{image: a:1, name: A}`, `spec.name: Invalid value: "A": must be a DNS-1123 label: 1 to 63 lower-case letters, digits and dashes, starting and ending with a letter or digit`},
		"the main container's name": {`{image: a:1, name: main, podTemplate: {spec: {containers: [{name: main, image: b}]}}}`, `spec.podTemplate.spec.containers[0].image: Forbidden: may not be set on the main container; use spec.image`},
		"an adopted object": {`{image: a:1, selector: {a: b, c/d: ""}, ports: [{port: 80, targetPort: http}], podTemplate: {metadata: {labels: {a: b, c/d: "", app.kubernetes.io/name: x}},
  spec: {containers: [{name: web, ports: [{name: http, containerPort: 53}, {containerPort: 53, protocol: UDP}]}]}}}`, ``},
		"ports of another object": {`{image: a:1, podTemplate: {spec: {containers: [{name: web, ports: [{containerPort: 53}]}]}}}`,
			`spec.podTemplate.spec.containers[0].ports: Forbidden: may not be set on the main container; use spec.ports`},
		"an invalid port of an adopted object": {`{image: a:1, selector: {a: b}, ports: [{port: 1}], podTemplate: {metadata: {labels: {a: b}}, spec: {containers: [{name: web, ports: [{containerPort: 0}]}]}}}`,
			`spec.podTemplate.spec.containers[0].ports[0].containerPort: Required value`},
		"a port that no container has": {`{image: a:1, selector: {a: b}, ports: [{port: 1, targetPort: a}, {port: 2, name: a}], podTemplate: {metadata: {labels: {a: b}}}}`,
			`spec.ports[0].targetPort: Invalid value: "a": no container declares a TCP port with this name; use a number or declare the port in podTemplate`},
		"labels that the selector does not select": {`{image: a:1, selector: {a: b, c: d}, podTemplate: {metadata: {labels: {c: e}}}}`, `
spec.podTemplate.metadata.labels[a]: Invalid value: "": must be "b", as in spec.selector, which has to select the pods
spec.podTemplate.metadata.labels[c]: Invalid value: "e": must be "d", as in spec.selector, which has to select the pods`},
		"an empty selector": {`{image: a:1, selector: {}}`, `spec.selector: Required value: must have a label; remove it if the object does not adopt a Deployment`},
		"a large selector":  {`{image: a:1, selector: {` + many(65) + `}}`, `spec.selector: Too many: 65: must have at most 64 items`},
		"no label": {`{image: a:1, selector: {a: "b "}}`, `spec.selector[a]: Invalid value: "b ": a valid label must be an empty string or consist of alphanumeric characters, ` +
			`'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
	} {
		if got := ruletest.Lines(app.Validate(read(t, tc.spec))); got != strings.TrimSpace(tc.want) {
			t.Errorf("%s: errors:\n%s\nwant:\n%s", name, got, tc.want)
		}
	}
}

func many(n int) (labels string) {
	for i := range n {
		labels += fmt.Sprintf("a%d: b,", i)
	}
	return labels
}

func TestImmutable(t *testing.T) {
	t.Parallel()
	const renamed = "spec.service.name: Forbidden: cannot be set, changed or removed after creation, because that of a Service cannot"
	const change = "spec.selector: Forbidden: cannot be set, changed or removed after creation, because that of a Deployment cannot"
	for _, tc := range []struct{ old, now, want string }{
		{`{image: a:1}`, `{image: a:2}`, ""},
		{`{image: a:1, selector: {a: b}}`, `{image: a:2, selector: {a: b}}`, ""},
		{`{image: a:1}`, `{image: a:1, selector: {a: b}}`, change},
		{`{image: a:1, selector: {a: b}}`, `{image: a:1}`, change},
		{`{image: a:1, selector: {a: b}}`, `{image: a:1, selector: {a: c}}`, change},
		{`{image: a:1, service: {name: a}}`, `{image: a:2, service: {name: a, sessionAffinity: None}}`, ""},
		{`{image: a:1}`, `{image: a:1, service: {name: ""}}`, ""},
		{`{image: a:1}`, `{image: a:1, service: {name: a}}`, renamed},
		{`{image: a:1, service: {name: a}}`, `{image: a:1}`, renamed},
		{`{image: a:1, service: {name: a}}`, `{image: a:1, service: {name: b}}`, renamed},
	} {
		if got := ruletest.Lines(app.Kind().Immutable(read(t, tc.now), read(t, tc.old))); got != tc.want {
			t.Errorf("%s, then %s: got %q", tc.old, tc.now, got)
		}
	}
}

func TestWarn(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string][]string{
		`{image: a:1}`: nil,
		`{image: a}`:   {"spec.image: has no tag; use a version tag or spec.imagePullPolicy: IfNotPresent"},
		`{image: a:latest, imagePullPolicy: Always}`: {"spec.image: the image of tag latest can change; use a version tag or a digest"},
		`{image: a:1, resources: {limits: {nvidia.com/gpu: 2}}}`: {
			"spec.strategy: set {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}: a rollout needs a free nvidia.com/gpu",
			"spec.resources: for several nvidia.com/gpu, mount an emptyDir of medium Memory at /dev/shm, which has 64 MiB",
		},
		`{image: a:1, selector: {a: b}, resources: {limits: {nvidia.com/gpu: 1}}}`: nil, // It keeps the strategy of the Deployment.
		`{image: a:1, replicas: 4, resources: {limits: {nvidia.com/gpu: 1}}}`:      nil,
		`{image: a:1, monitoring: {port: 9100}}`:                                   {"spec.monitoring.port: no container lists 9100, so nothing is scraped; add it to the ports of one"},
	} {
		if diff := cmp.Diff(want, app.Warn(read(t, spec))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
	named := read(t, `{image: a:1, ports: [{port: 80}]}`)
	named.Name = "vllm"
	if got := app.Warn(named); len(got) != 1 || !strings.HasPrefix(got[0], "metadata.name: vLLM fails") {
		t.Errorf("got %q", got)
	}
}
