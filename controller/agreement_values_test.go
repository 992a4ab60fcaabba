// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// The parts of random specs. There are few names, so that they refer to each other often.
var (
	words    = []string{"a", "b", "v", "w", "side", "init", "web", "x.y", "A"}
	oddities = []string{
		"", "A", "a_b", "a b", "-a", "a-", "../x", "/", "a/b", "é", "a:b", "0", "true", "\t", "$(A)", "{}",
		strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 254),
	}
	someNumbers    = []any{0, 1, 1, 2, 10, 80, 8080, 30000, -1, 65535, 65536, 2147483647, 420, 511, 512}
	someQuantities = []any{"0", "1", "500m", "2", "1Gi", "2Gi", "4Gi", "-1", "1.5", "100u", "1m", "1k", "1Mi", "0.5m", "2Mi", "1e3"}
	portsOrNames   = []any{80, 8080, 1, 0, 65536, "http", "admin", "none", "A", "10%", "25%", ""}
)

// texts are the values of string fields, by name.
var texts = map[string][]string{
	"name":               {"shared-memory", "a", "v", "w", "c", "side", "init", "web", "A", "net.ipv4.ip_forward", "kernel.shm_rmid_forced"},
	"image":              {"busybox:1", "a", "registry.example.com/a/b@sha256:" + strings.Repeat("0", 64), "A", ""},
	"mountPath":          {"/dev/shm", "/dev/shm/", "/m", "/n", "m", "/a:b", "/m/../n", ""},
	"devicePath":         {"/dev/a", "/dev/b", "a", "/m", "/x/../y"},
	"path":               {"/a", "a", "a/b", "a/../b", "..a", "/a/../b", ""},
	"subPath":            {"a", "a/b", "../a", "/a", ""},
	"subPathExpr":        {"$(A)", "../a", ""},
	"topologyKey":        {"kubernetes.io/hostname", "topology.kubernetes.io/zone", "a b", ""},
	"key":                {"a", "example.com/a", "K", "a b", "", "metadata.name", "kubernetes.io/hostname"},
	"ip":                 {"10.0.0.1", "10.0.0.2", "::1", "010.0.0.1", "10.0.0.256", "x", ""},
	"nameservers":        {"8.8.8.8", "1.1.1.1", "x", "fd00::1"},
	"searches":           {"a.b", "a_b.c", ".", "A b"},
	"fieldPath":          {"metadata.name", "metadata.labels", "metadata.labels['a']", "metadata.annotations['A.b/c']", "status.podIP", "spec.nodeName", "spec.x", "metadata.labels['a b']"},
	"resource":           {"limits.cpu", "requests.memory", "limits.ephemeral-storage", "requests.hugepages-2Mi", "cpu", "limits.gpu"},
	"apiVersion":         {"v1", "v1", "v2", ""},
	"volumeName":         {"v", "w", "none", ""},
	"containerName":      {"web", "side", "none", ""},
	"claimName":          {"a", "c", "A", ""},
	"serviceAccountName": {"a", "a.b", "A", "a_b"},
	"serviceAccount":     {"a", "A"},
	"hostname":           {"a", "a.b", "A"},
	"subdomain":          {"a", "a.b", "A"},
	"label":              {"", "a", "a=b", "a=", "a b", "=b", "example.com/a=B_c", "a=b=c"},
	"host":               {"", "a", "10.0.0.1"},
	"value":              {"", "a", "b", "a b", "Value", "-"},
	"values":             {"a", "b", "a b", "1"},
	"type":               {"RuntimeDefault", "Localhost", "Unconfined", "spc_t"},
	"level":              {"s0:c1,c2", "", "x"},
	"prefix":             {"", "A_", "=", "é"},
	"protocol":           {"TCP", "UDP", "SCTP", "tcp", ""},
	"appProtocol":        {"http", "kubernetes.io/h2c", "a b", ""},
	"localhostProfile":   {"a.json", "../a.json", ""},
	"runtimeClassName":   {"a", "A", "a.b"},
	"priorityClassName":  {"a", "A", "system-node-critical"},
	"request":            {"a", "b", "", "A"},
	"secretName":         {"a", "A", ""},
	"server":             {"a", ""},
	"driver":             {"csi.example.com", "A b", ""},
	"matchLabelKeys":     {"a", "b", "pod-template-hash", "a b"},
	"mismatchLabelKeys":  {"a", "b"},
	"namespaces":         {"a", "A"},
	"conditionType":      {"example.com/a", "a b", "Ready"},
	"command":            {"a", "b"},
	"audience":           {"a", ""},
	"procMount":          {"Default", "Unmasked", "a"},
	"signerName":         {"example.com/a", "a"},
}

// keys are the keys of maps, by name.
var keys = map[string][]string{
	"labels":       {"a", "b", "example.com/a", "app.kubernetes.io/name", "a b", "$patch"},
	"annotations":  {"a", "A.b/c", "kubectl.kubernetes.io/restartedAt", "container.apparmor.security.beta.kubernetes.io/web", "seccomp.security.alpha.kubernetes.io/pod", "a b"},
	"nodeSelector": {"a", "kubernetes.io/hostname", "a b", ""},
	"matchLabels":  {"a", "app.kubernetes.io/name", "a b"},
}

// constants are the values of named string types, valid and invalid.
var constants = map[string][]string{
	"ResourceName":                            {"cpu", "memory", "cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu", "gpu", "requests.cpu", "kubernetes.io/x", "storage"},
	"RestartPolicy":                           {"Always", "Always", "Never", "OnFailure", "x"},
	"ContainerRestartPolicy":                  {"Always", "Always", "Never", "OnFailure"},
	"DNSPolicy":                               {"ClusterFirst", "Default", "None", "ClusterFirstWithHostNet", "x"},
	"Protocol":                                {"TCP", "TCP", "UDP", "SCTP", "tcp", ""},
	"PullPolicy":                              {"Always", "IfNotPresent", "Never", "always"},
	"URIScheme":                               {"HTTP", "HTTPS", "http", ""},
	"HTTPProtocol":                            {"HTTP1", "HTTP2", "x"},
	"GRPCProbeMode":                           {"Plaintext", "TLS", "x"},
	"TolerationOperator":                      {"Exists", "Equal", "", "Lt", "Gt", "x"},
	"TaintEffect":                             {"NoSchedule", "NoExecute", "PreferNoSchedule", "", "x"},
	"NodeSelectorOperator":                    {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "x"},
	"LabelSelectorOperator":                   {"In", "NotIn", "Exists", "DoesNotExist", "x"},
	"UnsatisfiableConstraintAction":           {"DoNotSchedule", "ScheduleAnyway", "x"},
	"NodeInclusionPolicy":                     {"Honor", "Ignore", "x"},
	"MountPropagationMode":                    {"None", "HostToContainer", "Bidirectional", "x"},
	"RecursiveReadOnlyMode":                   {"Disabled", "IfPossible", "Enabled"},
	"TerminationMessagePolicy":                {"File", "FallbackToLogsOnError", "x"},
	"StorageMedium":                           {"", "Memory", "HugePages", "HugePages-2Mi", "x"},
	"HostPathType":                            {"", "Directory", "File", "x"},
	"SeccompProfileType":                      {"RuntimeDefault", "Localhost", "Unconfined", "x"},
	"AppArmorProfileType":                     {"RuntimeDefault", "Localhost", "Unconfined", "x"},
	"PreemptionPolicy":                        {"Never", "PreemptLowerPriority", "x"},
	"OSName":                                  {"linux", "linux", "windows", "x"},
	"Capability":                              {"ALL", "SYS_ADMIN", "NET_ADMIN"},
	"ProcMountType":                           {"Default", "Unmasked", "x"},
	"PodFSGroupChangePolicy":                  {"OnRootMismatch", "Always", "x"},
	"SupplementalGroupsPolicy":                {"Merge", "Strict", "x"},
	"PodSELinuxChangePolicy":                  {"Recursive", "MountOption", "x"},
	"ResourceResizeRestartPolicy":             {"NotRequired", "RestartContainer", "x"},
	"ServiceType":                             {"ClusterIP", "NodePort", "LoadBalancer"},
	"ResourceType":                            {"small", "medium", "large", "custom"},
	"DefaultProbes":                           {"Enabled", "Disabled"},
	"PersistentVolumeAccessMode":              {"ReadWriteOnce", "ReadOnlyMany", "x"},
	"PersistentVolumeMode":                    {"Filesystem", "Block"},
	"DeploymentStrategyType":                  {"RollingUpdate", "Recreate", "x", ""},
	"Signal":                                  {"SIGTERM", "SIGUSR1", "x"},
	"ContainerRestartRuleAction":              {"Restart", "RestartAllContainers", "x"},
	"ContainerRestartRuleOnExitCodesOperator": {"In", "NotIn", "x"},
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
