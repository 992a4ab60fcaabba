// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

// Each field's rules are in force, at the field's path. What a rule says in detail is
// tested with the rules.
func TestValidate(t *testing.T) {
	t.Parallel()
	const (
		image     = `must be an image reference such as registry.example.com/team/server:1.2: `
		action    = `must specify a handler type`
		out       = `; set resourceType: custom to use other CPU and memory, or remove both from limits and requests`
		label     = `must be a DNS-1123 label: 1 to 63 lower-case letters, digits and dashes, starting and ending with a letter or digit`
		once      = `: Forbidden: may be set in one place only: remove it here, or remove spec.`
		not       = `no container declares a TCP port with this name; use a number or declare the port in podTemplate`
		subdomain = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end ` +
			`with an alphanumeric character (e.g. 'example.com', regex used for validation is ` +
			`'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
		labelValue = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end ` +
			`with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is ` +
			`'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`
		qualifiedName = `name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character ` +
			`(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`
	)
	for name, tc := range map[string]struct{ spec, want string }{
		"an image": {`{image: a:1}`, ``},
		"no image": {
			`{}`,
			`spec.image: Required value: specify an image such as registry.example.com/team/server:1.2`,
		},
		"image": {
			`{image: A}`,
			`spec.image: Invalid value: "A": ` + image +
				`invalid reference format: repository name (library/A) must be lowercase`,
		},
		"name":       {`{image: a:1, name: 1-a}`, ``},
		"no label":   {`{image: a:1, name: a_b}`, `spec.name: Invalid value: "a_b": ` + label},
		"replicas 0": {`{image: a:1, replicas: 0}`, ``},
		"replicas": {
			`{image: a:1, replicas: -1}`,
			`spec.replicas: Invalid value: -1: must be between 0 and 1073741823, inclusive`,
		},

		"how the image is run": {
			`{image: a:1, imagePullPolicy: Never, imagePullSecrets: [{name: a}], command: [""], args: [a], terminationGracePeriodSeconds: 0, sharedMemory: 2Gi}`, ``,
		},
		"imagePullPolicy": {
			`{image: a:1, imagePullPolicy: never}`,
			`spec.imagePullPolicy: Unsupported value: "never": supported values: "Always", "IfNotPresent", "Never"`,
		},
		"imagePullSecrets": {
			`{image: a:1, imagePullSecrets: [{}, {name: a}, {name: a}]}`,
			`spec.imagePullSecrets[2].name: Duplicate value: "a"`,
		},
		"command and args": {
			`{image: a:1, command: [` + strings.Repeat("a,", 1025) + `], args: [` + strings.Repeat("a,", 1026) + `]}`,
			`spec.command: Too many: 1025: must have at most 1024 items` + "\n" + `spec.args: Too many: 1026: must have at most 1024 items`,
		},
		"terminationGracePeriodSeconds": {
			`{image: a:1, terminationGracePeriodSeconds: -1}`,
			`spec.terminationGracePeriodSeconds: Invalid value: -1: must be between 0 and 86400, inclusive`,
		},
		"scheduling": {`
{image: a:1, scheduling: {nodeSelector: {pool: gpu}, tolerations: [{key: gpu, operator: Exists}], runtimeClassName: nvidia, priorityClassName: high, schedulerName: s},
 podTemplate: {spec: {nodeSelector: {}, tolerations: [], runtimeClassName: "", priorityClassName: "", schedulerName: "", nodeName: a}}}`, ``},
		"scheduling, wrong": {`
{image: a:1, scheduling: {nodeSelector: {pool: "a b"}, tolerations: [{key: gpu, operator: In}], runtimeClassName: A, priorityClassName: B,
 schedulerName: ` + strings.Repeat("s", 254) + `}}`, `
spec.scheduling.schedulerName: Too long: may not be more than 253 characters
spec.scheduling.nodeSelector: Invalid value: "a b": ` + labelValue + `
spec.scheduling.priorityClassName: Invalid value: "B": ` + subdomain + `
spec.scheduling.runtimeClassName: Invalid value: "A": ` + subdomain + `
spec.scheduling.tolerations[0].operator: Unsupported value: "In": supported values: "Equal", "Exists"`},
		"scheduling, too many": {
			`{image: a:1, scheduling: {tolerations: [` + strings.Repeat("{operator: Exists},", 65) + `], nodeSelector: {` + labels(65) + `}}}`,
			"spec.scheduling.nodeSelector: Too many: 65: must have at most 64 items\nspec.scheduling.tolerations: Too many: 65: must have at most 64 items",
		},
		"labels of the pods": {`{image: a:1, scheduling: {podLabels: {kueue.x-k8s.io/queue-name: gpu, a: ""}}, podTemplate: {metadata: {labels: {b: c}}}}`, ``},
		"labels of the pods, wrong": {
			`{image: a:1, scheduling: {podLabels: {queue: "a b", "c d": e}}}`,
			`spec.scheduling.podLabels: Invalid value: "a b": ` + labelValue + "\n" + `spec.scheduling.podLabels: Invalid value: "c d": ` + qualifiedName,
		},
		"labels of the operator": {
			`{image: a:1, scheduling: {podLabels: {app.kubernetes.io/instance: web, app.kubernetes.io/managed-by: me}}}`,
			`spec.scheduling.podLabels[app.kubernetes.io/instance]: Forbidden: may not be set, because selectors use this label; remove it
spec.scheduling.podLabels[app.kubernetes.io/managed-by]: Forbidden: may not be set, because selectors use this label; remove it`,
		},
		"sharedMemory beyond the preset": {
			`{image: a:1, resourceType: medium, sharedMemory: 5Gi}`,
			`spec.sharedMemory: Invalid value: "5Gi": must be less than or equal to the memory limit of 4Gi of the main container, against which it counts; decrease it, or increase the limit`,
		},
		"sharedMemory without a limit": {`{image: a:1, resources: {}, sharedMemory: 5Gi}`, ``},

		"a preset, written down": {
			`{image: a:1, resourceType: medium, resources: {limits: {cpu: 2000m, memory: 4096Mi}, requests: {cpu: 2, memory: 4Gi}}}`,
			``,
		},
		"a size": {`{image: a:1, resourceType: gpu-l4, resources: {}}`, ``},
		"a size without its values": {
			`{image: a:1, resourceType: gpu-l4}`,
			`spec.resourceType: Invalid value: "gpu-l4": admission has not set the values of this size; update spec while the webhook runs ` +
				`and the cluster has the size, or set resourceType to small, medium, large or custom`,
		},
		"small, with others": {
			`{image: a:1, resourceType: small, resources: {limits: {cpu: "3"}}}`,
			`spec.resources: Invalid value: {"limits":{"cpu":"3"}}: resourceType small is 1 CPU and 2Gi` + out,
		},
		"medium, with small's": {
			`{image: a:1, resourceType: medium,` + small[len("\nresourceType: small\n"):] + `}`,
			`spec.resources: Invalid value: {"limits":{"cpu":"1","memory":"2Gi"},"requests":{"cpu":"1","memory":"2Gi"}}: ` +
				`resourceType medium is 2 CPU and 4Gi` + out,
		},
		"large, with none": {
			`{image: a:1, resourceType: large, resources: {}}`,
			``,
		},
		"small, and more": {
			`{image: a:1, resourceType: small, resources: {limits: {cpu: 1, memory: 2Gi, a.b/c: 1}, requests: {cpu: 1, memory: 2Gi}}}`,
			``,
		},
		"custom, with small's": {
			`{image: a:1, resourceType: custom,` + small[len("\nresourceType: small\n"):] + `}`,
			``,
		},
		"custom, empty": {`{image: a:1, resourceType: custom, resources: {}}`, ``},
		"custom, with none": {
			`{image: a:1, resourceType: custom}`,
			`spec.resources: Required value: must be set if resourceType is custom; set it, or set resourceType to small, medium or large`,
		},
		"an unknown type": {
			`{image: a:1, resourceType: Small, resources: {limits: {x: 1}}}`,
			`spec.resourceType: Invalid value: "Small": ` + label + "\n" +
				`spec.resources.limits[x]: Invalid value: "x": must be a standard resource for containers` + "\n" +
				`spec.resources.limits[x]: Invalid value: "x": must be a standard resource type or fully qualified`,
		},
		"a claim": {
			`{image: a:1, resources: {claims: [{name: a}]}, podTemplate: {spec: {resourceClaims: [{name: a, resourceClaimName: a}]}}}`,
			``,
		},

		"rollingUpdate 100%": {`{image: a:1, rollingUpdate: 100%}`, ``},
		"rollingUpdate 0": {
			`{image: a:1, rollingUpdate: 0}`,
			`spec.rollingUpdate: Invalid value: 0: must be a number from 1 to 1073741823, or a percentage from 1% to 100%`,
		},

		"strategy":            {`{image: a:1, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}`, ``},
		"strategy beside 25%": {`{image: a:1, rollingUpdate: 25%, strategy: {type: Recreate}}`, ``},
		"strategy beside another step": {
			`{image: a:1, rollingUpdate: 30%, strategy: {type: Recreate}}`,
			`spec.rollingUpdate: Forbidden: may not be set together with spec.strategy; remove spec.rollingUpdate or spec.strategy`,
		},
		"progressDeadlineSeconds": {`{image: a:1, progressDeadlineSeconds: 4}`, ``},
		"a deadline of minReadySeconds": {
			`{image: a:1, progressDeadlineSeconds: 3}`,
			`spec.progressDeadlineSeconds: Invalid value: 3: must be between 4 and 86400, inclusive`,
		},

		"ports": {`{image: a:1, ports: [{port: 1}, {port: 2, targetPort: tcp-1}]}`, ``},
		"a port": {
			`{image: a:1, ports: [{port: 65536, targetPort: 1}]}`,
			`spec.ports[0].port: Invalid value: 65536: must be between 1 and 65535, inclusive`,
		},
		"a port twice": {
			`{image: a:1, ports: [{port: 1}, {port: 1, protocol: TCP}]}`,
			`spec.ports[1]: Duplicate value: "TCP 1"`,
		},
		"a derived name twice": {
			`{image: a:1, ports: [{port: 1, name: tcp-2}, {port: 2}]}`,
			`spec.ports[1].name: Duplicate value: "tcp-2"`,
		},
		"a target that isn't": {
			`{image: a:1, ports: [{port: 1, targetPort: a}]}`,
			`spec.ports[0].targetPort: Invalid value: "a": ` + not,
		},
		"a target in the template": {
			`{image: a:1, ports: [{port: 1, targetPort: a}], podTemplate: {spec: {containers: [{name: b, image: c, ports: [{name: a, containerPort: 1}]}]}}}`,
			``,
		},
		"serviceType": {`{image: a:1, serviceType: LoadBalancer, ports: [{port: 1, nodePort: 30000}]}`, ``},
		"an unknown service": {
			`{image: a:1, serviceType: ExternalName}`,
			`spec.serviceType: Unsupported value: "ExternalName": supported values: "ClusterIP", "NodePort", "LoadBalancer"`,
		},
		"a nodePort, ClusterIP": {
			`{image: a:1, serviceType: ClusterIP, ports: [{port: 1}, {port: 2, nodePort: 30000}]}`,
			`spec.ports[1].nodePort: Forbidden: nodePort may not be used if serviceType is ClusterIP; remove the nodePort or change serviceType`,
		},

		"envs": {`{image: a:1, envs: [{name: A}, {name: A}]}`, `spec.envs[1].name: Duplicate value: "A"`},
		"envFrom": {
			`{image: a:1, envFrom: [{}]}`,
			"spec.envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
		},

		"probes": {`
image: a:1
ports: [{port: 1, name: a, protocol: UDP}]
readinessProbe: {tcpSocket: {port: a}}
livenessProbe: {tcpSocket: {port: b}}
startupProbe: {}`, `
spec.livenessProbe.tcpSocket.port: Invalid value: "b": the container has no port with this name; use a number or the name of one of its ports
spec.startupProbe: Required value: ` + action},
		"probes, of each kind": {`
image: a:1
readinessProbe: {grpc: {port: 1}, successThreshold: 2, terminationGracePeriodSeconds: 1}
livenessProbe: {grpc: {port: 1}, successThreshold: 2}
startupProbe: {grpc: {port: 1}, successThreshold: 2}`, `
spec.livenessProbe.successThreshold: Invalid value: 2: must be 1
spec.readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes
spec.startupProbe.successThreshold: Invalid value: 2: must be 1`},
		"a probe without action": {
			`{image: a:1, readinessProbe: {periodSeconds: 5}}`,
			`spec.readinessProbe: Required value: ` + action,
		},
		"a probe without, and a port": {`{image: a:1, ports: [{port: 1}], readinessProbe: {periodSeconds: 5}}`, ``},
		"a probe without, Disabled": {
			`{image: a:1, defaultProbes: Disabled, ports: [{port: 1}], readinessProbe: {periodSeconds: 5}}`,
			`spec.readinessProbe: Required value: ` + action,
		},
		"defaultProbes": {
			`{image: a:1, defaultProbes: disabled}`,
			`spec.defaultProbes: Unsupported value: "disabled": supported values: "Enabled", "Disabled"`,
		},

		"a template": {
			`
image: a:1
podTemplate:
  metadata: {labels: {app.kubernetes.io/name: modelbox, app.kubernetes.io/instance: web}}
  spec: {containers: [{name: web, workingDir: /a}]}`,
			``,
		},
		"a template that says too much": {
			`
image: a:1
podTemplate:
  metadata: {labels: {app.kubernetes.io/name: web}, name: a}
  spec: {restartPolicy: Never, containers: [{name: web, image: b:2}]}`, `
spec.podTemplate.metadata.labels[app.kubernetes.io/name]: Invalid value: "web": ` +
				`may not differ from the operator's value, because selectors use this label; remove it
spec.podTemplate.spec.containers[0].image: Forbidden: may not be set on the main container; use spec.image
spec.podTemplate.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := box(t, tc.spec)
			check(t, marshal(t, got), nil)
			setDefaults(got, nil)
			if diff := cmp.Diff(strings.TrimSpace(tc.want), ruletest.Lines(modelbox.Validate(got))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.spec, diff)
			}
		})
	}
}

// One answer has all errors: the operator's own in the order of the fields, then Kubernetes'.
func TestValidateTellsAll(t *testing.T) {
	t.Parallel()
	got := box(t, `
name: A
image: A
replicas: -1
resourceType: tiny
rollingUpdate: 0%
ports: [{port: 0, targetPort: 1, nodePort: 1}, {port: 1, name: A, targetPort: b}]
serviceType: ClusterIP
envs: [{name: ""}]
envFrom: [{}]
readinessProbe: {exec: {}}
livenessProbe: {tcpSocket: {port: 0}}
startupProbe: {exec: {}}
defaultProbes: Maybe
podTemplate: {spec: {x: 1, volumes: [{name: ""}]}}`)
	got.Name = "web.1"
	setDefaults(got, nil)
	want := []string{
		"metadata.name", "spec.name", "spec.image", "spec.replicas", "spec.resourceType", "spec.rollingUpdate",
		"spec.ports[0].port", "spec.ports[0].nodePort", "spec.ports[1].name",
		"spec.defaultProbes", "spec.podTemplate.spec.x", "spec.ports[1].targetPort", "spec.podTemplate.spec.volumes[0].name",
		"spec.envFrom", "spec.envs[0].name", "spec.livenessProbe.tcpSocket.port", "spec.readinessProbe.exec.command", "spec.startupProbe.exec.command",
	}
	if diff := cmp.Diff(want, places(modelbox.Validate(got))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The default name of the container has no error of its own.
func TestValidateName(t *testing.T) {
	t.Parallel()
	got := box(t, `{image: a:1}`)
	got.Name = "web.1"
	setDefaults(got, nil)
	if diff := cmp.Diff([]string{"metadata.name"}, places(modelbox.Validate(got))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWarn(t *testing.T) {
	t.Parallel()
	const metrics, unlisted = "spec.monitoring.port: no container lists ", ", so nothing is scraped; add it to the ports of one"
	const spare = "spec.strategy: set {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}: a rollout needs a free nvidia.com/gpu"
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"nothing": {`{image: a:1, replicas: 2, ports: [{port: 1, nodePort: 30000}], podTemplate: {spec: {containers: [{name: web}]}}}`, nil},
		"all": {
			`
image: a
rollingUpdate: 100%
ports: [{port: 1, nodePort: 80}]
podTemplate: {spec: {containers: [{name: b, image: b}], initContainers: [{name: c, image: c:latest}]}}`,
			[]string{
				"spec.rollingUpdate: 100% of 1 replicas allows a rollout to make all pods unavailable at once",
				"spec.ports[0].nodePort: 80 is outside the default range 30000-32767; the API server may refuse it",
				"spec.image: has no tag; use a version tag or spec.imagePullPolicy: IfNotPresent",
				"spec.podTemplate.spec.containers[0].image: has no tag; use a version tag or imagePullPolicy: IfNotPresent",
				"spec.podTemplate.spec.initContainers[0].image: has tag latest; use a version tag or imagePullPolicy: IfNotPresent",
			},
		},
		"an image that can change, with a policy": {
			`{image: a, imagePullPolicy: Never}`, []string{"spec.image: has no tag, so the image can change; use a version tag or a digest"},
		},
		"and with one in podTemplate": {
			`{image: a:latest, podTemplate: {spec: {containers: [{name: web, imagePullPolicy: IfNotPresent}]}}}`,
			[]string{"spec.image: the image of tag latest can change; use a version tag or a digest"},
		},
		"a template that cannot be read": {`{image: a:1, podTemplate: []}`, nil},
		"a liveness probe that is quick": {
			`{image: a:1, livenessProbe: {httpGet: {path: /healthz, port: 80}}}`,
			[]string{
				"spec.livenessProbe: restarts a container that is not live 30 s after its start; for 30 minutes, add this to spec:",
				`startupProbe: {"httpGet":{"path":"/healthz","port":80},"periodSeconds":2,"failureThreshold":900}`,
			},
		},
		"one that is slow":           {`{image: a:1, livenessProbe: {exec: {command: [x]}, failureThreshold: 7}}`, nil},
		"one with a startup probe":   {`{image: a:1, livenessProbe: {exec: {command: [x]}}, startupProbe: {exec: {command: [x]}}}`, nil},
		"the default liveness probe": {`{image: a:1, ports: [{port: 80}]}`, nil},
		"a device, and a spare pod":  {`{image: a:1, replicas: 3, resources: {limits: {nvidia.com/gpu: 1}}}`, []string{spare}},
		"a preset with a device":     {`{image: a:1, resourceType: small, resources: {limits: {nvidia.com/gpu: 1}}}`, []string{spare}},
		"a device, and enough pods":  {`{image: a:1, replicas: 4, resources: {limits: {nvidia.com/gpu: 1}}}`, nil},
		"a device, and no pods":      {`{image: a:1, replicas: 0, resources: {limits: {nvidia.com/gpu: 1}}}`, nil},
		"a device, and no spare pod": {`{image: a:1, resources: {limits: {nvidia.com/gpu: 1}}, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}`, nil},
		"a device, and Recreate":     {`{image: a:1, resources: {limits: {nvidia.com/gpu: 1}}, strategy: {type: Recreate}}`, nil},
		"a device, and a strategy":   {`{image: a:1, resources: {limits: {nvidia.com/gpu: 1}}, strategy: {rollingUpdate: {maxUnavailable: 0}}}`, []string{spare}},
		"a device, and an empty one": {`{image: a:1, replicas: 3, resources: {limits: {nvidia.com/gpu: 1}}, strategy: {}}`, []string{spare}},
		"a device, and another step": {
			`{image: a:1, replicas: 2, rollingUpdate: 30%, resources: {limits: {nvidia.com/gpu: 1}}}`,
			[]string{spare, "spec.rollingUpdate: remove it, because it may not be set together with spec.strategy"},
		},
		"several devices": {
			`{image: a:1, strategy: {type: Recreate}, resources: {limits: {nvidia.com/gpu: 2}}}`,
			[]string{"spec.sharedMemory: not set, so /dev/shm has 64 MiB; processes that use several nvidia.com/gpu share more"},
		},
		"several devices, and shared memory": {`{image: a:1, strategy: {type: Recreate}, sharedMemory: 1Gi, resources: {limits: {nvidia.com/gpu: 2, memory: 2Gi}}}`, nil},
		"several devices, and a volume": {
			`{image: a:1, strategy: {type: Recreate}, resources: {limits: {nvidia.com/gpu: 2}}, podTemplate: {spec: {
  volumes: [{name: shm, emptyDir: {medium: Memory}}], containers: [{name: web, volumeMounts: [{name: shm, mountPath: /dev/shm}]}]}}}`, nil,
		},
		"a port for metrics that a container lists": {
			`{image: a:1, ports: [{name: http, port: 80}], monitoring: {port: metrics}, podTemplate: {spec: {containers: [{name: b, image: b:1, ports: [{name: metrics, containerPort: 9100}]}]}}}`, nil,
		},
		"one that is made of a port":   {`{image: a:1, ports: [{name: http, port: 80, targetPort: 8080}], monitoring: {port: http}}`, nil},
		"one that is made of a target": {`{image: a:1, ports: [{port: 80, targetPort: 8080}], monitoring: {port: 8080}}`, nil},
		"the first port, which adopted pods do not list": {
			`{image: a:1, selector: {app: web}, ports: [{port: 80, targetPort: 8080}], monitoring: {}, podTemplate: {metadata: {labels: {app: web}}}}`, []string{metrics + "8080" + unlisted},
		},
		"one that is that of a Service":         {`{image: a:1, ports: [{port: 80, targetPort: 8080}], monitoring: {port: 80}}`, []string{metrics + "80" + unlisted}},
		"one with a name that no container has": {`{image: a:1, monitoring: {port: metrics}}`, []string{metrics + "metrics" + unlisted}},
		"a claim": {
			`{image: a:1, resources: {claims: [{name: a}]}, podTemplate: {spec: {resourceClaims: [{name: a, resourceClaimName: a}]}}}`,
			[]string{strings.Replace(spare, "nvidia.com/gpu", "device", 1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, modelbox.Warn(stored(t, tc.spec))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Kubernetes sets VLLM_PORT for a Service "vllm".
func TestWarnOfTheNameOfAServer(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]int{
		`{image: a:1, ports: [{port: 80}]}`: 1, `{image: a:1}`: 0, `{image: a:1, ports: [{port: 80}], podTemplate: {spec: {enableServiceLinks: false}}}`: 0,
	} {
		got := stored(t, spec)
		got.Name = "vllm"
		if warnings := modelbox.Warn(got); len(warnings) != want || want > 0 && !strings.HasPrefix(warnings[0], "metadata.name: vLLM fails") {
			t.Errorf("%s: %q", spec, warnings)
		}
	}
}

// labels returns n labels in YAML's flow style.
func labels(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "l%d: a, ", i)
	}
	return out.String()
}

// The API server refuses another class of a load balancer that exists.
func TestLoadBalancerClassIsImmutable(t *testing.T) {
	t.Parallel()
	const balanced = `{image: a:1, ports: [{port: 80}], serviceType: LoadBalancer}`
	const a, b = `{image: a:1, ports: [{port: 80}], serviceType: LoadBalancer, service: {loadBalancerClass: a}}`, `{image: a:1, ports: [{port: 80}], serviceType: LoadBalancer, service: {loadBalancerClass: b}}`
	for _, tc := range []struct{ old, now, want string }{
		{balanced, `{image: a:2, ports: [{port: 81}], serviceType: LoadBalancer, service: {sessionAffinity: ClientIP}}`, ``},
		{a, a, ``},
		{a, `{image: a:1, ports: [{port: 80}]}`, ``},
		{`{image: a:1, ports: [{port: 80}]}`, a, ``},
		{`{image: a:1, serviceType: LoadBalancer}`, a, ``},
		{a, b, "spec.service.loadBalancerClass"},
		{balanced, a, "spec.service.loadBalancerClass"},
		{a, balanced, "spec.service.loadBalancerClass"},
		{`{image: a:1}`, `{image: a:1, service: {name: a}}`, "spec.service.name"},
	} {
		var fields []string
		for _, err := range modelbox.Kind().Immutable(boxOf(t, tc.now), boxOf(t, tc.old)) {
			fields = append(fields, err.Field)
		}
		if got := strings.Join(fields, ", "); got != tc.want {
			t.Errorf("%s, then %s: got %q", tc.old, tc.now, got)
		}
	}
}

// An error says whether its field has no effect: of those that only the operator reads, always. Of
// the others, the API server decides.
func TestFieldsThatAreNotInEffect(t *testing.T) {
	t.Parallel()
	const never = `"0 0 30 2 *"`
	for spec, want := range map[string]bool{
		`{schedules: [{name: a, schedule: ` + never + `, replicas: 1}]}`: true, `{schedules: [{name: a, schedule: "0 0 * * *", timeZone: Mars, replicas: 1}]}`: true,
		`{restartOnChange: Referenced, windows: [{schedule: ` + never + `, duration: 1h}]}`: true, `{windows: [{schedule: "0 0 * * *", duration: 1h}]}`: true,
		`{restartOnChange: Referenced, windows: [{schedule: "0 0 * * *", duration: 1h}], skipDates: ["2026-02-30"]}`: true, `{restartOnChange: Referenced, skipDates: ["2026-02-03"]}`: true,
		`{route: {hosts: [a.example.com], gateway: {name: a}}}`: true, `{monitoring: {}}`: true, `{disruption: {}}`: true,
		`{autoscaling: {maxReplicas: 2}, schedules: [{name: a, schedule: "0 0 * * *", replicas: 1}]}`: true,
		`{autoscaling: {maxReplicas: 2, metrics: [{type: Other}]}}`:                                   true, `{rollingUpdate: 2, strategy: {type: Recreate}}`: true,
		`{minReadySeconds: 9999}`: false, `{readinessProbe: {tcpSocket: {port: other}}}`: false, `{sharedMemory: 64Gi}`: false,
		`{podTemplate: {spec: {volumes: [{name: v, secret: {secretName: a/b}}]}}}`: false,
	} {
		obj := box(t, `{image: "a:1", `+spec[1:])
		setDefaults(obj, nil)
		errs := modelbox.Validate(obj)
		if got := len(rules.Ineffective(errs)) > 0; got != want || len(errs) == 0 || len(rules.Unbuildable(errs)) > 0 {
			t.Errorf("%s: %t: %v", spec, got, errs)
		}
	}
}
