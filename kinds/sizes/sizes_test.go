// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sizes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/sizes"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

const labelValue = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character ` +
	`(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`

// A size is the fields of a ModelBox that it defines.
func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[modelv1.ResourceType]string{
		`{}`:        {},
		`sizes: {}`: {},
		`sizes: {a: {}, b: {description: nothing}}`: {"a": `{resources: {}}`, "b": `{resources: {}}`},
		`
sizes:
  gpu-l4:
    description: one NVIDIA L4
    resources: {limits: {cpu: 8, memory: 32Gi, nvidia.com/gpu: 1}, requests: {cpu: "4"}}
    sharedMemory: 8Gi
    scheduling: {nodeSelector: {pool: l4}, tolerations: [{key: nvidia.com/gpu, operator: Exists}], runtimeClassName: nvidia}
    podLabels: {kueue.x-k8s.io/queue-name: gpu}
    rollout: {maxSurge: 0, maxUnavailable: 1}`: {"gpu-l4": `
resources: {limits: {cpu: 8, memory: 32Gi, nvidia.com/gpu: 1}, requests: {cpu: 4, memory: 32Gi, nvidia.com/gpu: 1}}
sharedMemory: 8Gi
scheduling: {nodeSelector: {pool: l4}, tolerations: [{key: nvidia.com/gpu, operator: Exists}], runtimeClassName: nvidia,
  podLabels: {kueue.x-k8s.io/queue-name: gpu}}
strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}`},
		`
sizes:
  llm:
    resources: {limits: {nvidia.com/gpu: 2}}
    server:
      image: llm:1
      command: [serve]
      args: ["--model=${model.path}", "-n", "${accelerators}", "--port=${port}", "$(HOME)", "$PATH"]
      envs: [{name: MODEL, value: "${model.file}"}, {name: PORT, value: "${port}"}]
      port: 8000
      readinessProbe: {httpGet: {path: /health}, periodSeconds: 5}
      startupSeconds: 5
      terminationGracePeriodSeconds: 120`: {"llm": `
image: llm:1
command: [serve]
args: ["--model=${model.path}", "-n", "2", "--port=8000", "$(HOME)", "$PATH"]
envs: [{name: MODEL, value: "${model.file}"}, {name: PORT, value: "8000"}]
ports: [{port: 8000, targetPort: 8000, protocol: TCP}]
readinessProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 5}
startupProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 2, failureThreshold: 3}
terminationGracePeriodSeconds: 120
resources: {limits: {nvidia.com/gpu: 2}, requests: {nvidia.com/gpu: 2}}`},
		`sizes: {q: {podLabels: {a: b}}}`:                                   {"q": `{resources: {}, scheduling: {podLabels: {a: b}}}`},
		`sizes: {cpu: {server: {image: "a:1", args: ["${accelerators}"]}}}`: {"cpu": `{image: "a:1", args: ["0"], resources: {}}`},
	} {
		got, errs := sizes.Parse([]byte(text))
		if len(errs) > 0 {
			t.Errorf("%s: %s", text, ruletest.Lines(errs))
			continue
		}
		expected := modelbox.Sizes{}
		for name, spec := range want {
			expected[name] = &modelv1.ModelBoxSpec{}
			if err := yaml.UnmarshalStrict([]byte(spec), expected[name]); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// One error anywhere refuses the whole file, and each has the path of its field.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const other = "  fine: {resources: {limits: {cpu: 1}}}\n"
	for text, want := range map[string]string{
		`a: {resourcez: {}}`:                    `sizes.a.resourcez: Forbidden: a size has no such field; check its name and its position`,
		`a: {scheduling: {affinity: {}}}`:       `sizes.a.scheduling.affinity: Forbidden: a size has no such field; check its name and its position`,
		`A: {}`:                                 `sizes[A]: Invalid value: "A": must be a DNS-1123 label: 1 to 63 lower-case letters, digits and dashes, starting and ending with a letter or digit`,
		`small: {}`:                             `sizes[small]: Forbidden: is built in; use another name`,
		`custom: {}`:                            `sizes[custom]: Forbidden: is built in; use another name`,
		`a: {description: "two\nlines"}`:        `sizes[a].description: Invalid value: must be one line of at most 256 bytes`,
		`a: {sharedMemory: 0}`:                  `sizes[a].sharedMemory: Invalid value: "0": must be greater than 0`,
		`a: {resources: {claims: [{name: c}]}}`: `sizes[a].resources.claims: Forbidden: a size has no claims; remove them`,
		`a: {rollout: {maxSurge: 0, maxUnavailable: 0}}`:           `sizes[a].rollout: Invalid value: maxSurge and maxUnavailable may not both be 0, because no rollout could begin; set one of them to 1 or more`,
		`a: {scheduling: {tolerations: [{key: a, operator: In}]}}`: `sizes[a].scheduling.tolerations[0].operator: Unsupported value: "In": supported values: "Equal", "Exists"`,
		`a: {resources: {limits: {cpu: 1}, requests: {cpu: 2}}}`:   `sizes[a].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`,
		`a: {podLabels: {app.kubernetes.io/name: a}}`:              `sizes[a].podLabels[app.kubernetes.io/name]: Forbidden: may not be set, because selectors use this label; remove it`,
		`a: {podLabels: {a: " "}, scheduling: {podLabels: {}}}`:    `sizes[a].scheduling.podLabels: Forbidden: is a field of the size; use podLabels beside scheduling` + "\n" + `sizes[a].podLabels: Invalid value: " ": ` + labelValue,
		`a: {server: {}}`:                                                                                `sizes[a].server.image: Required value: specify an image such as registry.example.com/team/server:1.2`,
		`a: {server: {image: "A B"}}`:                                                                    `sizes[a].server.image: Invalid value: "A B": must be an image reference such as registry.example.com/team/server:1.2: invalid reference format: repository name (library/A B) must be lowercase`,
		`a: {server: {image: b, port: 70000}}`:                                                           `sizes[a].server.port: Invalid value: 70000: must be between 1 and 65535, inclusive`,
		`a: {server: {image: b, args: ["${x}"]}}`:                                                        `sizes[a].server.args[0]: Unsupported value: "${x}": supported values: "${model.path}", "${model.file}", "${accelerators}", "${port}"`,
		`a: {server: {image: b, args: ["${"]}}`:                                                          `sizes[a].server.args[0]: Unsupported value: "${": supported values: "${model.path}", "${model.file}", "${accelerators}", "${port}"`,
		`a: {server: {image: b, envs: [{name: A, value: "${model.uri}"}]}}`:                              `sizes[a].server.envs[A]: Unsupported value: "${model.uri}": supported values: "${model.path}", "${model.file}", "${accelerators}", "${port}"`,
		`a: {server: {image: b, envs: [{name: "A="}]}}`:                                                  `sizes[a].server.envs[0].name: Invalid value: "A=": a valid environment variable name must consist only of printable ASCII characters other than '='`,
		`a: {server: {image: b, startupSeconds: 9}}`:                                                     `sizes[a].server.readinessProbe: Required value: startupSeconds needs it`,
		`a: {server: {image: b, readinessProbe: {periodSeconds: 5}}}`:                                    `sizes[a].server.readinessProbe: Required value: must have httpGet, exec or grpc; without readinessProbe, it is a TCP probe of port`,
		`a: {server: {image: b, port: 80, startupSeconds: 86401, readinessProbe: {httpGet: {path: /}}}}`: `sizes[a].server.startupSeconds: Invalid value: 86401: must be between 1 and 86400, inclusive`,
		`a: {server: {image: b, terminationGracePeriodSeconds: -1}}`:                                     `sizes[a].server.terminationGracePeriodSeconds: Invalid value: -1: must be between 0 and 86400, inclusive`,
	} {
		got, errs := sizes.Parse([]byte("sizes:\n" + other + "  " + text + "\n"))
		if lines := ruletest.Lines(errs); lines != want || got != nil {
			t.Errorf("%s: %d sizes, and errors:\n%s\nwant:\n%s", text, len(got), lines, want)
		}
	}
}

// What is no file of sizes at all has an error, and no size.
func TestParseWhatIsNoFile(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range sizes.MaxSizes + 1 {
		fmt.Fprintf(&many, "  s%d: {}\n", i)
	}
	for _, text := range []string{
		"sizes: [", "sizes: []", "sizes: {a: {resources: {limits: {cpu: x}}}}", "sizes: {a: {}, a: {}}", "size: {}",
		"#" + strings.Repeat("a", sizes.MaxBytes), "sizes:\n" + many.String(),
	} {
		if got, errs := sizes.Parse([]byte(text)); len(errs) == 0 || got != nil {
			t.Errorf("%.40s: %d sizes and no error", text, len(got))
		}
	}
}
