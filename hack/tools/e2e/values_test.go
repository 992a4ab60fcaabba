// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	pem    = "-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n"
	base64 = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tClRVbEpRZz09Ci0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K"
)

// patchOf is a JSON patch of objects in a kustomization.
func patchOf(target string, operations ...string) string {
	return "- target: {" + target + "}\n  patch: |-\n    - " + strings.Join(operations, "\n    - ") + "\n"
}

// patch is one of a Deployment.
func patch(process string, operations ...string) string {
	return patchOf("kind: Deployment, name: modelbox-"+process, operations...)
}

func add(path, value string) string {
	return fmt.Sprintf("{op: add, path: /spec/template/spec%s, value: %s}", path, value)
}

// without are the components that leave kinds out.
func without(kinds ...string) string {
	text := "components:\n"
	for _, kind := range kinds {
		text += "- CONFIG/without/" + strings.ToLower(kind) + "\n"
	}
	return text
}

// serving are the patches that name the kinds that stay, as the chart does, and not those that the components leave out.
func serving(kinds string) string {
	return patch("webhook", add("/containers/0/command", "[/webhook, '--kinds="+kinds+"']")) +
		patch("controller", add("/containers/0/command", "[/controller, --fetch-image=modelbox-controller, '--kinds="+kinds+"']"))
}

// provided are the patches for a certificate that is not cert-manager's.
func provided() string {
	text := patch("webhook", add("/volumes/0/secret/secretName", "own-tls"))
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		operations := []string{"{op: remove, path: /metadata/annotations}"}
		for i := range 5 {
			operations = append(operations, fmt.Sprintf("{op: add, path: /webhooks/%d/clientConfig/caBundle, value: %s}", i, base64))
		}
		text += patchOf("kind: "+kind, operations...)
	}
	return text
}

// values are tests of the values: each has what kustomize needs for the same install. A
// kustomization has the folders config and config/fetch-image, and the fields here.
var values = map[string]struct {
	values string
	// kustomization are more fields, and patches those of its field patches.
	kustomization, patches string
	// without is what the keys of the objects begin with that are not there.
	without []string
}{
	"images": {
		values: `
webhook: {image: {repository: r.io/w, tag: v9}}
controller: {image: {repository: "localhost:5000/team/c", tag: "1.10"}}`,
		kustomization: `
images:
- {name: modelbox-webhook, newName: r.io/w, newTag: v9}
- {name: modelbox-controller, newName: "localhost:5000/team/c", newTag: "1.10"}`,
	},
	"a registry": {
		values:        `{webhook: {image: {repository: r.io/w}}, controller: {image: {repository: r.io/c}}}`,
		kustomization: `images: [{name: modelbox-webhook, newName: r.io/w}, {name: modelbox-controller, newName: r.io/c}]`,
	},
	"digests": {
		values: `
webhook: {image: {repository: r.io/w, digest: "` + digest + `"}}
controller: {image: {repository: r.io/c, tag: v2, digest: "` + digest + `"}}`,
		kustomization: `
images:
- {name: modelbox-webhook, newName: r.io/w, digest: "` + digest + `"}
- {name: modelbox-controller, newName: r.io/c, newTag: v2, digest: "` + digest + `"}`,
	},
	"pulling": {
		values: `
webhook: {image: {pullPolicy: Always}}
controller: {image: {pullPolicy: Never}}
imagePullSecrets: [{name: a}, {name: b.c}]`,
		patches: patch("webhook", add("/containers/0/imagePullPolicy", "Always"), add("/imagePullSecrets", "[{name: a}, {name: b.c}]")) +
			patch("controller", add("/containers/0/imagePullPolicy", "Never"), add("/imagePullSecrets", "[{name: a}, {name: b.c}]")),
	},
	"replicas": {
		values:        `{webhook: {replicas: 3}, controller: {replicas: 1}}`,
		kustomization: `replicas: [{name: modelbox-webhook, count: 3}, {name: modelbox-controller, count: 1}]`,
	},
	"resources": {
		values: `
webhook: {goMemLimit: 1GiB, resources: {limits: {cpu: 4, memory: 1200Mi}, requests: {memory: 1Gi}}}
controller: {goMemLimit: "off", resources: {requests: {cpu: 100m}}}`,
		patches: patch("webhook", add("/containers/0/resources", `{limits: {cpu: 4, memory: 1200Mi}, requests: {cpu: 50m, memory: 1Gi}}`), add("/containers/0/env/0/value", "1GiB")) +
			patch("controller", add("/containers/0/resources/requests/cpu", "100m"), add("/containers/0/env/0/value", `"off"`)),
	},
	"flags": {
		values: `
webhook: {extraArgs: [--shutdown-delay=30s, -v=1]}
controller: {modelMirrors: ["hf://=https://hf-mirror.example", "https://a.example=https://b.example/c?d={}"], extraArgs: [--metrics-secure]}`,
		patches: patch("webhook", add("/containers/0/args", "[--shutdown-delay=30s, -v=1]")) +
			patch("controller", add("/containers/0/args", `["--model-mirror=hf://=https://hf-mirror.example", "--model-mirror=https://a.example=https://b.example/c?d={}", "--metrics-secure"]`)),
	},
	"one kind": {
		values:        "kinds: [ModelBox]",
		kustomization: without("App", "Eru", "Genericdaemon", "UnitedDeployment"),
		patches:       serving("ModelBox"),
	},
	"some kinds": {
		values:        "kinds: [UnitedDeployment, App, Genericdaemon]",
		kustomization: without("ModelBox", "Eru"),
		patches:       serving("UnitedDeployment,App,Genericdaemon"),
	},
	"nodes": {
		values: `
webhook: {nodeSelector: {pool: system, rack: "1"}, tolerations: [{key: a, operator: Exists, effect: NoSchedule}]}
controller: {nodeSelector: {pool: other}, tolerations: [{operator: Exists, tolerationSeconds: 5, effect: NoExecute}]}`,
		patches: patch("webhook", add("/nodeSelector", `{pool: system, rack: "1"}`), add("/tolerations", "[{key: a, operator: Exists, effect: NoSchedule}]")) +
			patch("controller", add("/nodeSelector", "{pool: other}"), add("/tolerations", "[{operator: Exists, tolerationSeconds: 5, effect: NoExecute}]")),
	},
	"affinity and annotations": {
		values: `
webhook: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}, podAnnotations: {a.b/c: "1"}, deploymentAnnotations: {d: "true"}}
controller: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: rack}]}}, podAnnotations: {e: f}, deploymentAnnotations: {g: h}}`,
		patches: patch("webhook", add("/affinity/nodeAffinity", "{preferredDuringSchedulingIgnoredDuringExecution: []}"),
			`{op: add, path: /spec/template/metadata/annotations/a.b~1c, value: "1"}`, `{op: add, path: /metadata/annotations, value: {d: "true"}}`) +
			patch("controller", add("/affinity/podAntiAffinity", "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: rack}]}"),
				"{op: add, path: /spec/template/metadata/annotations/e, value: f}", "{op: add, path: /metadata/annotations, value: {g: h}}"),
	},
	"optional APIs": {
		values:        `optionalAPIs: {gateway-api: true, keda: true, prometheus-operator: true}`,
		kustomization: "components: [CONFIG/gateway-api, CONFIG/keda, CONFIG/prometheus-operator]",
	},
	"the network of the nodes": {values: `webhook: {hostNetwork: true}`, kustomization: "components: [CONFIG/host-network]"},
	"ports": {
		values: `webhook: {ports: {webhook: 10250, metrics: 18080, health: 18081}, extraArgs: [--shutdown-delay=30s]}`,
		patches: patch("webhook", add("/containers/0/ports/0/containerPort", "10250"), add("/containers/0/ports/1/containerPort", "18080"), add("/containers/0/ports/2/containerPort", "18081"),
			add("/containers/0/args", `["--health-probe-bind-address=:18081", "--metrics-bind-address=:18080", "--webhook-bind-address=:10250", "--shutdown-delay=30s"]`)),
	},
	"the image that fetches models": {
		values:        `{controller: {image: {repository: r.io/c, tag: v2, digest: "` + digest + `"}}, fetch: {image: {repository: "public.example:5000/team/c"}}}`,
		kustomization: "images: [{name: modelbox-controller, newName: r.io/c, newTag: v2, digest: '" + digest + "'}]\ntransformers: []",
		patches: patch("controller",
			"{op: replace, path: /spec/template/spec/containers/0/command/1, value: '--fetch-image=public.example:5000/team/c:v2@"+digest+"'}"),
	},
	"a priority class": {
		values: `priorityClassName: system-node-critical`,
		patches: patch("webhook", add("/priorityClassName", "system-node-critical")) + patch("controller", add("/priorityClassName", "system-node-critical")) +
			patchOf("kind: ResourceQuota", "{op: replace, path: /spec/scopeSelector/matchExpressions/0/values/0, value: system-node-critical}"),
	},
	"no priority class": {
		values:  `priorityClassName: ""`,
		patches: patch("webhook", "{op: remove, path: /spec/template/spec/priorityClassName}") + patch("controller", "{op: remove, path: /spec/template/spec/priorityClassName}"),
		without: []string{"ResourceQuota "},
	},
	"no CRDs":             {values: `crds: {enabled: false}`, without: []string{"CustomResourceDefinition "}},
	"no aggregated roles": {values: `aggregatedRoles: {enabled: false}`, without: []string{"ClusterRole /modelbox-sizes", "ClusterRole /modelbox-edit-", "ClusterRole /modelbox-view-"}},
	"no policies":         {values: `rights: {enabled: false}`, without: []string{"ValidatingAdmissionPolicy"}},
	"no network policies": {values: `network: {enabled: false}`, without: []string{"NetworkPolicy "}},
	"the API server's addresses": {
		values: `network: {controllerEgress: [{to: [{ipBlock: {cidr: 192.0.2.10/32}}], ports: [{protocol: TCP, port: 6443}]}]}`,
		patches: patchOf("kind: NetworkPolicy, name: modelbox-controller",
			"{op: replace, path: /spec/egress, value: [{to: [{ipBlock: {cidr: 192.0.2.10/32}}], ports: [{protocol: TCP, port: 6443}]}]}"),
	},
	"a certificate of one's own": {
		values:  "certs: {mode: provided, provided: {secretName: own-tls, caBundle: " + fmt.Sprintf("%q", pem) + "}}",
		patches: provided(),
		without: []string{"Certificate ", "Issuer "},
	},
	"a certificate that the controller issues": {
		values:        `certs: {mode: self-managed}`,
		kustomization: "components: [CONFIG/certs-self-managed]",
		patches:       patch("controller", add("/containers/0/command/-", "--webhook-certificate-validity=720h")),
	},
	"one that is valid for a day": {
		values:        `certs: {mode: self-managed, selfManaged: {validity: 24h}}`,
		kustomization: "components: [CONFIG/certs-self-managed]",
		patches:       patch("controller", add("/containers/0/command/-", "--webhook-certificate-validity=24h")),
	},
	"cert-manager, and what the other mode needs": {
		values: "certs: {provided: {secretName: own-tls, caBundle: " + fmt.Sprintf("%q", pem) + "}}",
	},
	"sizes": {
		values: `sizes: {gpu: {description: one}}`,
		kustomization: `resources: [CONFIG]
configMapGenerator:
- name: modelbox-sizes
  namespace: modelbox-system
  options: {disableNameSuffixHash: true, labels: {app.kubernetes.io/name: modelbox-operator, app.kubernetes.io/part-of: modelbox-operator}}
  literals: ["sizes.yaml=sizes:\n  gpu:\n    description: one"]
`,
	},
	"monitoring": {values: `monitoring: {enabled: true}`, kustomization: "resources: [CONFIG, CONFIG/monitoring]"},
	"labels for Prometheus": {
		values:        `monitoring: {enabled: true, labels: {release: prometheus, rack: "1"}}`,
		kustomization: "resources: [CONFIG, CONFIG/monitoring]",
		patches: patchOf("group: monitoring.coreos.com",
			"{op: add, path: /metadata/labels/release, value: prometheus}", `{op: add, path: /metadata/labels/rack, value: "1"}`),
	},
	"a dashboard": {values: `dashboard: {enabled: true}`, kustomization: "resources: [CONFIG]\ncomponents: [CONFIG/monitoring/dashboard]"},
	"labels for Grafana's sidecar": {
		values:        `dashboard: {enabled: true, labels: {grafana: "1"}}`,
		kustomization: "resources: [CONFIG]\ncomponents: [CONFIG/monitoring/dashboard]",
		patches:       patchOf("kind: ConfigMap", `{op: add, path: /metadata/labels/grafana, value: "1"}`),
	},
	"tracing": {
		values:        `tracing: {endpoint: "http://collector.observability.svc:4318"}`,
		kustomization: "resources: [CONFIG, CONFIG/network/tracing]",
		patches: patchOf("kind: Deployment",
			add("/containers/0/args", `["--tracing-endpoint=http://collector.observability.svc:4318", "--tracing-sampling-ratio=1"]`)),
	},
	"tracing, with other flags, to a collector elsewhere": {
		values: `
namespaces: []
webhook: {extraArgs: [--shutdown-delay=30s]}
controller: {modelMirrors: ["hf://=https://hf-mirror.example"], extraArgs: [--max-concurrent-reconciles=2]}
tracing: {endpoint: "https://traces.example/otlp", samplingRatio: 0, egress: [{ports: [{protocol: TCP, port: 443}]}]}`,
		kustomization: "resources: [CONFIG, CONFIG/network/tracing]",
		patches: patch("webhook", add("/containers/0/args", `["--tracing-endpoint=https://traces.example/otlp", "--tracing-sampling-ratio=0", "--shutdown-delay=30s"]`)) +
			patch("controller", add("/containers/0/args",
				`["--model-mirror=hf://=https://hf-mirror.example", "--tracing-endpoint=https://traces.example/otlp", "--tracing-sampling-ratio=0", "--max-concurrent-reconciles=2"]`)) +
			patchOf("kind: NetworkPolicy, name: modelbox-tracing", "{op: replace, path: /spec/egress, value: [{ports: [{protocol: TCP, port: 443}]}]}"),
	},
	"tracing without network policies": {
		values:        `{network: {enabled: false}, tracing: {endpoint: "http://192.0.2.1:4318"}}`,
		kustomization: "resources: [CONFIG]",
		patches: patchOf("kind: Deployment",
			add("/containers/0/args", `["--tracing-endpoint=http://192.0.2.1:4318", "--tracing-sampling-ratio=1"]`)),
		without: []string{"NetworkPolicy "},
	},
	"a part of another chart": {values: `global: {imageRegistry: r.io}`},
}

func TestValues(t *testing.T) {
	for name, test := range values {
		t.Run(name, func(t *testing.T) {
			text := test.kustomization + "\n"
			if !strings.Contains(text, "transformers:") {
				text += "transformers: [CONFIG/fetch-image]\n"
			}
			if !strings.Contains(text, "resources:") {
				text += "resources: [CONFIG]\n"
			}
			if test.patches != "" {
				text += "patches:\n" + test.patches
			}
			want := install(t, text)
			for _, prefix := range test.without {
				before := len(want)
				maps.DeleteFunc(want, func(key string, _ map[string]any) bool { return strings.HasPrefix(key, prefix) })
				if len(want) == before {
					t.Errorf("kustomize makes nothing that begins with %q", prefix)
				}
			}
			compare(t, want, rendered(t, system, test.values))
		})
	}
}

// Every value of the chart has a test.
func TestEveryValueHasATest(t *testing.T) {
	tested := map[string]bool{"namespaces": true}
	for _, test := range values {
		for _, path := range leaves(t, test.values) {
			tested[path] = true
		}
	}
	loaded, err := load()
	if err != nil {
		t.Fatal(err)
	}
	all, err := yaml.Marshal(loaded.Values)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range leaves(t, string(all)) {
		if !tested[path] && !slices.ContainsFunc(slices.Collect(maps.Keys(tested)), func(other string) bool {
			return strings.HasPrefix(other, path+".") || strings.HasPrefix(path, other+".")
		}) {
			t.Errorf("no test sets the value %s", path)
		}
	}
}

// leaves returns the paths of the values that are no maps, or empty.
func leaves(t *testing.T, text string) []string {
	t.Helper()
	var fields map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	var out []string
	var walk func(path string, in any)
	walk = func(path string, in any) {
		fields, ok := in.(map[string]any)
		// The schema of resources is Kubernetes' own, and the chart copies them as a whole.
		if !ok || len(fields) == 0 || strings.HasSuffix(path, ".resources") {
			out = append(out, path)
			return
		}
		for name, value := range fields {
			walk(strings.TrimPrefix(path+"."+name, "."), value)
		}
	}
	walk("", fields)
	return out
}

// A value that is refused is named, so that a user finds it.
func TestValuesThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"sizes: {big: 1}":                                      "/sizes/big",
		"webhook: {replicas: 0}":                               "/webhook/replicas",
		"controller: {replicas: 1.5}":                          "/controller/replicas",
		"webhook: {image: {repository: 'r.io/w:v1'}}":          "/webhook/image/repository",
		"webhook: {image: {repository: 'https://r.io/w'}}":     "/webhook/image/repository",
		"webhook: {image: {tag: 1.10}}":                        "/webhook/image/tag",
		"webhook: {image: {digest: 'sha256:1'}}":               "/webhook/image/digest",
		"webhook: {image: {pullPolicy: always}}":               "/webhook/image/pullPolicy",
		"webhook: {goMemLimit: 224Mi}":                         "/webhook/goMemLimit",
		"webhook: {resources: {limit: {}}}":                    "/webhook/resources",
		"webhook: {resources: {limits: {memory: 1 GB}}}":       "/webhook/resources/limits/memory",
		"webhook: {extraArgs: [drain]}":                        "/webhook/extraArgs/0",
		"webhook: {extraArgs: [--kinds=App]}":                  "/webhook/extraArgs/0",
		"controller: {extraArgs: [-kinds, App]}":               "/controller/extraArgs/0",
		"kinds: [modelbox]":                                    "/kinds/0",
		"kinds: [App, App]":                                    "/kinds",
		"controller: {extraArgs: [--namespaces=a]}":            "/controller/extraArgs/0",
		"controller: {modelMirrors: ['hf://']}":                "/controller/modelMirrors/0",
		"controller: {nodeSelector: {a: true}}":                "/controller/nodeSelector/a",
		"controller: {tolerations: [{operator: exists}]}":      "/controller/tolerations/0/operator",
		"controller: {hostNetwork: true}":                      "/controller",
		"webhook: {ports: {webhook: 0}}":                       "/webhook/ports/webhook",
		"fetch: {image: {repository: 'r.io/c:v1'}}":            "/fetch/image/repository",
		"imagePullSecrets: [a]":                                "/imagePullSecrets/0",
		"priorityClassName: Upper":                             "/priorityClassName",
		"namespaces: a,b":                                      "/namespaces",
		"namespaces: [A]":                                      "/namespaces/0",
		"crds: {install: true}":                                "/crds",
		"rights: {enabled: null}":                              "/rights",
		"network: {controllerEgress: [{from: []}]}":            "/network/controllerEgress/0",
		"tracing: {endpoint: 'collector:4318'}":                "/tracing/endpoint",
		"tracing: {endpoint: 'http://user:pw@c'}":              "/tracing/endpoint",
		"tracing: {samplingRatio: 1.5}":                        "/tracing/samplingRatio",
		"webhook: {extraArgs: [--tracing-endpoint=http://c]}":  "/webhook/extraArgs/0",
		"certs: {mode: self-signed}":                           "/certs/mode",
		"certs: {selfManaged: {validity: 90m}}":                "/certs/selfManaged/validity",
		"certs: {mode: provided}":                              "/certs/provided",
		"certs: {mode: provided, provided: {secretName: a}}":   "/certs/provided/caBundle",
		"certs: {mode: provided, provided: {caBundle: LS0tL}}": "/certs/provided/caBundle",
		"monitoring: {enabled: true, labels: {a: 1}}":          "/monitoring/labels/a",
		"namespaces: [a, modelbox-system]":                     `the operator runs in namespace "modelbox-system"`,
		// The policy allows the controller to change only caBundle.
		"{certs: {mode: self-managed}, rights: {enabled: false}}": "needs rights.enabled=true",
		// A private key would be readable by each client that may get the webhook configurations.
		fmt.Sprintf("certs: {mode: provided, provided: {secretName: a, caBundle: %q}}", pem+"-----BEGIN PRIVATE KEY-----\nTUlJQg==\n-----END PRIVATE KEY-----\n"): "/certs/provided/caBundle",
	} {
		if _, err := helm(t, system, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that contains %q", text, err, want)
		}
	}
}
