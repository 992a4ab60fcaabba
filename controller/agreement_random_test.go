// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
)

// drawnName is the name of each random object, and so of its main container.
const drawnName = "web"

// oddities and oddNumbers are values that many fields may not have.
var oddities = []string{
	"", "A", "a_b", "a b", "-a", "../x", "/", "/dev/shm", "a:b", "true", "\t", "$(A)", "0", "-1", "1.5", "100u", "1e3", "10%", "101%", "x.y",
	"10.0.0.256", "::1", "none", "web", "Always", strings.Repeat("a", 64), strings.Repeat("a", 254),
}

var oddNumbers = []int{0, -1, 1, 2, 80, 512, 65536, 2147483647}

// specDrawer draws random specs.
type specDrawer struct{ editDrawer }

// newSpecDrawer returns a drawer for which fields have the values that fields of their name have in
// the valid specs and in the corpus.
func newSpecDrawer(seed uint64, corpus []drawnSpec) specDrawer {
	d := specDrawer{editDrawer{Rand: rand.New(rand.NewPCG(seed, 11)), values: map[string][]any{}, odd: oddities}}
	for _, kind := range slices.Sorted(maps.Keys(validSpecs)) {
		for _, text := range validSpecs[kind] {
			d.learn(kind, fromYAML(text))
		}
	}
	for _, text := range validFeatures {
		d.learn("podTemplate", fromYAML(text))
	}
	for _, known := range corpus {
		d.learn(known.kind, known.spec)
	}
	return d
}

// spec returns a random spec whose values have the types of their fields.
func (d specDrawer) spec() drawnSpec {
	GinkgoHelper()
	for {
		spec := d.anySpec()
		typed := map[string]any{"ModelBox": &modelv1.ModelBoxSpec{}, "App": &appv1.AppSpec{}, "Genericdaemon": &mydomainv1beta1.GenericdaemonSpec{}}
		if json.Unmarshal([]byte(asJSON(spec.spec)), typed[spec.kind]) == nil {
			return spec
		}
	}
}

// anySpec returns a valid spec, with some features of pods, and up to three changes anywhere in it.
func (d specDrawer) anySpec() drawnSpec {
	GinkgoHelper()
	kinds := slices.Sorted(maps.Keys(validSpecs))
	kind := kinds[d.IntN(len(kinds))]
	spec := fromYAML(validSpecs[kind][d.IntN(len(validSpecs[kind]))])
	if d.IntN(8) > 0 {
		template := map[string]any{}
		for range d.IntN(4) {
			merge(template, fromYAML(validFeatures[d.IntN(len(validFeatures))]))
		}
		spec["podTemplate"] = template
	}
	for range d.IntN(4) {
		if d.IntN(4) == 0 || len(spec) == 0 {
			other := d.values[kind][d.IntN(len(d.values[kind]))].(tree)
			names := slices.Sorted(maps.Keys(other))
			name := names[d.IntN(len(names))]
			spec[name] = other[name]
			continue
		}
		patch, err := jsonpatch.DecodePatch(d.edit(d.below(spot{value: spec})))
		Expect(err).NotTo(HaveOccurred())
		changed, err := patch.Apply([]byte(asJSON(spec)))
		Expect(err).NotTo(HaveOccurred())
		spec = nil
		Expect(json.Unmarshal(changed, &spec)).To(Succeed())
	}
	return drawnSpec{kind: kind, spec: spec}
}

func fromYAML(text string) map[string]any {
	out := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		panic(text + ": " + err.Error())
	}
	return out
}

// merge merges a tree into another: maps by key, lists by appending, containers by name.
func merge(into, from map[string]any) {
	for key, value := range from {
		switch value := value.(type) {
		case map[string]any:
			if there, ok := into[key].(map[string]any); ok {
				merge(there, value)
				continue
			}
		case []any:
			if there, ok := into[key].([]any); ok {
				into[key] = mergeLists(there, value)
				continue
			}
		}
		into[key] = value
	}
}

func mergeLists(into, from []any) []any {
	for _, item := range from {
		fields, _ := item.(map[string]any)
		i := slices.IndexFunc(into, func(other any) bool {
			named, _ := other.(map[string]any)
			return fields["name"] != nil && named["name"] == fields["name"]
		})
		if i >= 0 {
			merge(into[i].(map[string]any), fields)
		} else {
			into = append(into, item)
		}
	}
	return into
}

// validSpecs are specs that are valid without a pod template.
var validSpecs = map[string][]string{
	"ModelBox": {
		`{image: "server:1"}`,
		`{image: "server:1", ports: [{name: http, port: 8080}, {name: admin, port: 81, targetPort: 8081}]}`,
		`{image: "server:1", resourceType: large, ports: [{port: 80, targetPort: 8080}], serviceType: NodePort}`,
		`{image: "server:1", resourceType: custom, resources: {limits: {cpu: "2", memory: 2Gi}, requests: {cpu: "1", memory: 1Gi}}, envs: [{name: A, value: b}]}`,
		`{image: "server:1", ports: [{port: 80}], envs: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "1"}}},
		  {name: B, valueFrom: {configMapKeyRef: {name: a, key: k}}}], envFrom: [{secretRef: {name: a}, prefix: A_}]}`,
		`{image: "server:1", ports: [{port: 80}], readinessProbe: {httpGet: {path: /, port: 80, httpHeaders: [{name: A, value: b}]}, periodSeconds: 5},
		  livenessProbe: {exec: {command: [a]}, terminationGracePeriodSeconds: 5}, startupProbe: {grpc: {port: 80}}}`,
		`{image: "server:1", imagePullPolicy: Never, imagePullSecrets: [{name: a}, {name: b}], command: [a, b], args: [$(A)], terminationGracePeriodSeconds: 0}`,
		`{image: "server:1", scheduling: {nodeSelector: {a: b}, tolerations: [{key: a, operator: Exists, effect: NoSchedule}, {key: b, value: c, effect: NoExecute, tolerationSeconds: -5}],
		  runtimeClassName: r, priorityClassName: p, schedulerName: s}}`,
		`{image: "server:1", sharedMemory: 1Gi, ports: [{port: 80}], progressDeadlineSeconds: 80, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}`,
		`{image: "server:1", sharedMemory: 2Gi, resources: {limits: {memory: 4Gi, example.com/gpu: "1"}}, strategy: {type: Recreate}}`,
		`{image: "server:1", envs: [{name: F, valueFrom: {fileKeyRef: {volumeName: v, path: a, key: K}}}], podTemplate: {spec: {volumes: [{name: v, emptyDir: {}}]}}}`,
	},
	"App": {
		`{image: "server:1"}`,
		`{image: "server:1", ports: [{name: http, port: 80, targetPort: 8080}, {name: dns, port: 53, protocol: UDP, nodePort: 30053}]}`,
		`{image: "server:1", resources: {limits: {cpu: "1", hugepages-2Mi: 4Mi, memory: 1Gi}, requests: {cpu: 500m}}, replicas: 3}`,
		`{image: "server:1", envs: [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, {name: B, valueFrom: {secretKeyRef: {name: a, key: k}}}]}`,
		`{image: "server:1", imagePullPolicy: Always, imagePullSecrets: [{name: a}], command: [a], args: [b], envFrom: [{configMapRef: {name: a}}, {secretRef: {name: a}, prefix: A_}], progressDeadlineSeconds: 1}`,
		`{image: "server:1", scheduling: {nodeSelector: {a: b}, tolerations: [{operator: Exists}], runtimeClassName: r, schedulerName: s}}`,
	},
	"Genericdaemon": {
		`{image: "agent:1"}`,
		`{image: "agent:1", label: logs}`,
		`{image: "agent:1", label: logs=yes, resources: {limits: {example.com/gpu: 1}, requests: {cpu: 100m}}, rollingUpdate: 20%, envs: [{name: A, value: b}]}`,
	},
}

// validFeatures are parts of pod templates that are valid alone and mostly together.
var validFeatures = []string{
	`{metadata: {labels: {a: b}, annotations: {b: c}}}`,
	`{spec: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, containers: [{name: side, image: "b:1", ports: [{containerPort: 9000, hostPort: 9000}]}]}}`,
	`{spec: {containers: [{name: side, image: "b:1", ports: [{name: admin, containerPort: 9000}, {containerPort: 9001, protocol: UDP}], env: [{name: A, value: b}],
	  readinessProbe: {tcpSocket: {port: admin}}, resources: {limits: {cpu: 100m, memory: 64Mi}}}]}}`,
	`{spec: {containers: [{name: web, args: [a], workingDir: /w, lifecycle: {preStop: {sleep: {seconds: 5}}, postStart: {exec: {command: [a]}}}}]}}`,
	`{spec: {containers: [{name: web, securityContext: {runAsUser: 1000, runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]},
	  seccompProfile: {type: RuntimeDefault}, readOnlyRootFilesystem: true}}]}}`,
	`{spec: {initContainers: [{name: init, image: "i:1", command: [a]}, {name: proxy, image: "p:1", restartPolicy: Always, ports: [{name: proxy, containerPort: 15001}],
	  startupProbe: {httpGet: {path: /, port: 15001}}}]}}`,
	`{spec: {volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Gi}}, {name: w, configMap: {name: a, items: [{key: k, path: p}], defaultMode: 420}}],
	  containers: [{name: web, volumeMounts: [{name: v, mountPath: /v}, {name: w, mountPath: /w, readOnly: true, subPath: s}]}]}}`,
	`{spec: {volumes: [{name: s, secret: {secretName: a}}, {name: p, persistentVolumeClaim: {claimName: a}}, {name: h, hostPath: {path: /h, type: Directory}}, {name: nfs, nfs: {server: a, path: /p}}]}}`,
	`{spec: {volumes: [{name: proj, projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 3600}}, {downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}},
	  {configMap: {name: a}}]}}, {name: d, downwardAPI: {items: [{path: c, resourceFieldRef: {containerName: web, resource: limits.cpu, divisor: 1m}}]}}]}}`,
	`{spec: {volumes: [{name: e, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}, {name: c, csi: {driver: csi.example.com}},
	  {name: img, image: {reference: "m:1"}}]}}`,
	`{spec: {tolerations: [{key: a, operator: Exists, effect: NoSchedule}, {key: b, value: c, effect: NoExecute, tolerationSeconds: 5}]}}`,
	`{spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: b}}, minDomains: 2},
	  {maxSkew: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}]}}`,
	`{spec: {nodeSelector: {a: b}, nodeName: a, schedulerName: s, priorityClassName: p, runtimeClassName: r, preemptionPolicy: Never, priority: 5}}`,
	`{spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]},
	  preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: Gt, values: ["1"]}]}}]}}}}`,
	`{spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchExpressions: [{key: a, operator: Exists}]}}],
	  preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: {topologyKey: z, namespaces: [b]}}]}}}}`,
	`{spec: {dnsPolicy: None, dnsConfig: {nameservers: [1.1.1.1], searches: [a.b], options: [{name: ndots, value: "2"}]}, hostAliases: [{ip: 10.0.0.1, hostnames: [a]}], hostname: a, subdomain: b}}`,
	`{spec: {serviceAccountName: a, automountServiceAccountToken: false, imagePullSecrets: [{name: a}], enableServiceLinks: false, terminationGracePeriodSeconds: 60, shareProcessNamespace: true}}`,
	`{spec: {securityContext: {runAsUser: 1, runAsGroup: 2, fsGroup: 3, supplementalGroups: [4], fsGroupChangePolicy: OnRootMismatch, seccompProfile: {type: Localhost, localhostProfile: a.json},
	  sysctls: [{name: net.ipv4.ip_local_port_range, value: "1 2"}], appArmorProfile: {type: RuntimeDefault}}}}`,
	`{spec: {resources: {limits: {cpu: "16", memory: 32Gi}, requests: {cpu: "8", memory: 16Gi}}}}`,
	`{spec: {resourceClaims: [{name: c, resourceClaimTemplateName: t}], containers: [{name: side, image: "b:1", resources: {claims: [{name: c}]}}]}}`,
	`{spec: {os: {name: linux}, readinessGates: [{conditionType: example.com/a}], schedulingGates: [{name: example.com/g}], hostUsers: false, setHostnameAsFQDN: true, overhead: {cpu: 10m}}}`,
	`{spec: {containers: [{name: side, image: "b:1", imagePullPolicy: Never, terminationMessagePolicy: FallbackToLogsOnError, resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}],
	  env: [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a']"}}}], envFrom: [{configMapRef: {name: a}}]}]}}`,
	`{spec: {containers: [{name: side, image: "b:1", volumeMounts: [{name: shared-memory, mountPath: /dev/shm}]}]}}`,
	`{spec: {volumes: [{name: blk, persistentVolumeClaim: {claimName: a}}], containers: [{name: side, image: "b:1", volumeDevices: [{name: blk, devicePath: /dev/x}]}]}}`,
	`{spec: {hostPID: true, hostIPC: true, containers: [{name: side, image: "b:1", stdin: true, tty: true, livenessProbe: {grpc: {port: 1}, initialDelaySeconds: 5}}]}}`,
}
