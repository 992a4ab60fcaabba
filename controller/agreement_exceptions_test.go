// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// exception is a validation rule of the operator itself, by which admission refuses objects
// whose children the API server accepts. Each has its reason, and examples that only this rule
// refuses.
type exception struct {
	reason   string
	path     string // A regular expression for the paths of the fields.
	detail   string // A regular expression for the message.
	examples []string
}

func (e exception) is(err *field.Error) bool {
	return regexp.MustCompile(`^(`+e.path+`)$`).MatchString(err.Field) && regexp.MustCompile(e.detail).MatchString(err.Error())
}

// many returns a list in YAML's flow style.
func many(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ", ")
}

func isException(err *field.Error) bool {
	for _, e := range exceptions {
		if e.is(err) {
			return true
		}
	}
	return false
}

var exceptions = map[string]exception{
	"names that no Secret can have": {
		reason:   "such pods never start, and the controller could not read the object",
		path:     `spec\.imagePullSecrets\[[0-9]+\]\.name|spec\.podTemplate\.spec\..+`,
		detail:   `must be the name of a (Secret|ConfigMap|PersistentVolumeClaim)`,
		examples: []string{`App {image: "a:1", imagePullSecrets: [{name: "-1"}]}`},
	},
	"the operator's own labels": {
		reason:   "selectors depend on them",
		path:     `spec\.podTemplate\.metadata\.labels\[app\.kubernetes\.io/(name|instance|managed-by)\]`,
		detail:   `may not differ from the operator's value`,
		examples: []string{`ModelBox {image: "a:1", podTemplate: {metadata: {labels: {app.kubernetes.io/name: other}}}}`},
	},
	"keys of the operator and of the Deployment controller": {
		reason: "another value would be undone, or would take what the operator compares",
		path:   `spec\.(pod|deployment|service)Metadata\.(labels|annotations)\[.+\]`,
		detail: `may not be set, because the operator`,
		examples: []string{
			`ModelBox {image: "a:1", podMetadata: {labels: {app.kubernetes.io/name: other}}}`,
			`App {image: "a:1", deploymentMetadata: {annotations: {model.github.com/desired-hash: a, deployment.kubernetes.io/revision: "1"}}}`,
		},
	},
	"fields of the main container that the object has itself": {
		reason:   "one of two values would have no effect",
		path:     `spec\.podTemplate\.spec\.containers\[\d+\]\.\w+`,
		detail:   `may not be set on the main container`,
		examples: []string{`ModelBox {image: "a:1", podTemplate: {spec: {containers: [{name: web, image: "b:1"}]}}}`},
	},
	"fields in two places": {
		reason: "one of two values would have no effect",
		path: `spec\.podTemplate\.spec\.(imagePullSecrets|terminationGracePeriodSeconds|nodeSelector|tolerations|runtimeClassName|priorityClassName|schedulerName|containers\[\d+\]\.(command|args|imagePullPolicy|envFrom))|` +
			`spec\.podTemplate\.metadata\.(labels|annotations)\[queue\]|spec\.scheduling\.podLabels\[queue\]`,
		detail: `may be set in one place only`,
		examples: []string{
			`ModelBox {image: "a:1", command: [a], podTemplate: {spec: {containers: [{name: web, command: [b]}]}}}`,
			`ModelBox {image: "a:1", args: [a], imagePullPolicy: Never, podTemplate: {spec: {containers: [{name: web, args: [b], imagePullPolicy: Never}]}}}`,
			`ModelBox {image: "a:1", terminationGracePeriodSeconds: 1, podTemplate: {spec: {terminationGracePeriodSeconds: 1}}}`,
			`ModelBox {image: "a:1", scheduling: {tolerations: [{operator: Exists}], runtimeClassName: a}, podTemplate: {spec: {tolerations: [{key: a, operator: Exists}], runtimeClassName: b}}}`,
			`App {image: "a:1", scheduling: {nodeSelector: {a: b}, priorityClassName: a, schedulerName: a}, podTemplate: {spec: {nodeSelector: {c: d}, priorityClassName: b, schedulerName: b}}}`,
			`App {image: "a:1", scheduling: {podLabels: {queue: a}}, podTemplate: {metadata: {labels: {queue: b}}}}`,
			`App {image: "a:1", podMetadata: {labels: {queue: a}}, scheduling: {podLabels: {queue: b}}}`,
			`ModelBox {image: "a:1", podMetadata: {labels: {queue: a}, annotations: {queue: a}}, podTemplate: {metadata: {labels: {queue: b}, annotations: {queue: b}}}}`,
			`Genericdaemon {image: "a:1", args: [a], podTemplate: {spec: {containers: [{name: web, args: [b]}]}}}`,
			`App {image: "a:1", imagePullSecrets: [{name: a}], podTemplate: {spec: {imagePullSecrets: [{name: b}]}}}`,
			`App {image: "a:1", envFrom: [{secretRef: {name: a}}], podTemplate: {spec: {containers: [{name: web, envFrom: [{secretRef: {name: b}}]}]}}}`,
		},
	},
	"what is in the place of the volume of sharedMemory": {
		reason: "the strategic merge would make one volume of two, and of two mounts of one directory one would be hidden",
		path:   `spec\.podTemplate\.spec\.(volumes\[\d+\]\.name|containers\[\d+\]\.volumeMounts\[\d+\]\.mountPath)`,
		detail: `is the volume of spec\.sharedMemory|spec\.sharedMemory is mounted at`,
		examples: []string{
			`ModelBox {image: "a:1", sharedMemory: 1Gi, podTemplate: {spec: {volumes: [{name: shared-memory, emptyDir: {}}]}}}`,
			`ModelBox {image: "a:1", sharedMemory: 1Gi, podTemplate: {spec: {volumes: [{name: v, emptyDir: {}}], containers: [{name: web, volumeMounts: [{name: v, mountPath: /dev/shm/}]}]}}}`,
		},
	},
	"sharedMemory that cannot be used": {
		reason:   "the process that uses all of it would be killed; and with 0, all memory of the node could be used",
		path:     `spec\.sharedMemory`,
		detail:   `must be less than or equal to the memory limit|must be greater than 0`,
		examples: []string{`ModelBox {image: "a:1", sharedMemory: 3Gi}`, `ModelBox {image: "a:1", sharedMemory: 0}`},
	},
	"images that no container runtime can read": {
		reason:   "the API server takes any text, and the pods never start",
		path:     `spec\.image|spec\.podTemplate\.spec\.(containers|initContainers)\[\d+\]\.image`,
		detail:   `must be an image reference|specify an image|Too long`,
		examples: []string{`App {image: "A B"}`, `App {image: "a:1", podTemplate: {spec: {containers: [{name: side, image: "b:"}]}}}`},
	},
	"fields that this release does not know": {
		reason:   "they could be neither built nor repaired",
		path:     `spec\.podTemplate\..*`,
		detail:   `has no such field|the field is set twice|must be .*, not |quantities must match|parsing time`,
		examples: []string{`App {image: "a:1", podTemplate: {spec: {nodeSelektor: {}}}}`, `App {image: "a:1", podTemplate: {spec: {hostNetwork: 5}}}`},
	},
	"bounds": {
		reason: "every list, map, string and number of the schemas has a bound, and so has a pod template as a whole",
		path:   `spec\.(envs|envFrom|ports|image|podTemplate|replicas|rollingUpdate|command|args|imagePullSecrets|(progressDeadline|terminationGracePeriod)Seconds|scheduling\.\w+)|spec\.ports\[\d+\]\.appProtocol`,
		detail: `Too many|Too long|may not be more than|1 to 253 characters|1073741823|86400`,
		examples: []string{
			`App {image: "a:1", replicas: 1073741824}`,
			`ModelBox {image: "a:1", rollingUpdate: 1073741824}`,
			`App {image: "a:1", envs: [` + many(1025, `{name: A%d}`) + `]}`,
			`ModelBox {image: "a:1", envFrom: [` + many(65, `{configMapRef: {name: a%d}}`) + `]}`,
			`App {image: "a:1", ports: [` + many(65, `{name: a%d, port: 80%[1]d}`) + `]}`,
			`App {image: "` + strings.Repeat("a/", 600) + `a"}`,
			`App {image: "a:1", ports: [{port: 80, appProtocol: ` + strings.Repeat("a", 200) + `.` + strings.Repeat("b", 40) + `/` + strings.Repeat("c", 40) + `}]}`,
			`App {image: "a:1", command: [` + many(1025, `a%d`) + `], args: [` + many(1025, `a%d`) + `]}`,
			`App {image: "a:1", imagePullSecrets: [` + many(17, `{name: a%d}`) + `], progressDeadlineSeconds: 86401}`,
			`ModelBox {image: "a:1", terminationGracePeriodSeconds: 86401}`,
			`App {image: "a:1", scheduling: {nodeSelector: {` + many(65, `a%d: b`) + `}, tolerations: [` + many(65, `{key: a%d}`) + `]}}`,
			`ModelBox {image: "a:1", scheduling: {schedulerName: ` + strings.Repeat("a", 254) + `}}`,
			`App {image: "a:1", podTemplate: {metadata: {annotations: {a: ` + strings.Repeat("a", 140_000) + `}}}}`,
		},
	},
	"directives of a strategic merge": {
		reason:   "in a map they would act on what the operator generated, and be gone from the child",
		path:     `spec\.podTemplate\..*`,
		detail:   `directives of a strategic merge are not supported`,
		examples: []string{`App {image: "a:1", podTemplate: {spec: {nodeSelector: {$patch: replace}}}}`},
	},
	"items of a merged list without a name of their own": {
		reason: "the strategic merge would make one item of two",
		path:   `spec\.podTemplate\.spec\.((containers|initContainers|volumes)\[\d+\]\.name|(containers|initContainers)\[\d+\]\.volumeMounts\[\d+\]\.mountPath)`,
		detail: `Duplicate value|Required value`,
		examples: []string{
			`App {image: "a:1", podTemplate: {spec: {containers: [{name: side, image: "b:1"}, {name: side, image: "b:1", args: [a]}]}}}`,
			`App {image: "a:1", podTemplate: {spec: {initContainers: [{name: init, image: "b:1"}, {name: init, image: "b:1"}]}}}`,
			`ModelBox {image: "a:1", podTemplate: {spec: {volumes: [{name: v, emptyDir: {}}, {emptyDir: {}}]}}}`,
			`App {image: "a:1", podTemplate: {spec: {volumes: [{name: v, emptyDir: {}}], containers: [{name: web, volumeMounts: [{name: v, mountPath: /v}, {name: v, mountPath: /v}]}]}}}`,
			`App {image: "a:1", podTemplate: {spec: {volumes: [{name: v, emptyDir: {}}], containers: [{name: web, volumeMounts: [{name: v}]}]}}}`,
		},
	},
	"quantities that are not parsed": {
		reason: "it would take minutes, so nothing is built of them",
		path:   `spec\..*`,
		detail: `must be a quantity of at most 64 characters with an exponent`,
		examples: []string{
			`App {image: "a:1", podTemplate: {spec: {volumes: [{name: v, emptyDir: {sizeLimit: 1e999999999}}]}}}`,
			`ModelBox {image: "a:1", podTemplate: {spec: {resources: {limits: {cpu: /dev/shm}}}}}`,
		},
	},
	"named ports that no container has": {
		reason: "the kubelet looks a probe's port up in its own container, the endpoints of a Service in all: they would never be found",
		path:   `spec\.(readinessProbe|livenessProbe|startupProbe)\.(httpGet|tcpSocket)\.port|spec\.ports\[\d+\]\.targetPort`,
		detail: `the container has no port with this name|no container declares a`,
		examples: []string{
			`ModelBox {image: "a:1", readinessProbe: {tcpSocket: {port: none}}}`,
			`App {image: "a:1", ports: [{port: 80, targetPort: none}]}`,
		},
	},
	"one port of the nodes for two protocols": {
		reason: "the schema wants them unique, and not every load balancer takes it",
		path:   `spec\.ports\[\d+\]\.nodePort`,
		detail: `Duplicate value`,
		examples: []string{
			`App {image: "a:1", ports: [{name: a, port: 53, nodePort: 30053}, {name: b, port: 53, protocol: UDP, nodePort: 30053}]}`,
		},
	},
	"ports of the nodes": {
		reason:   "a dry run does not look at the cluster's range, which a create does",
		path:     `spec\.ports\[\d+\]\.nodePort`,
		detail:   `must be between 1 and 65535, inclusive`,
		examples: []string{`App {image: "a:1", ports: [{port: 80, nodePort: 65536}]}`},
	},
	"words of the operator's own": {
		reason:   "the children don't have the field, or not always",
		path:     `spec\.(serviceType|defaultProbes|strategy\.type)`,
		detail:   `Unsupported value`,
		examples: []string{`ModelBox {image: "a:1", serviceType: none}`, `ModelBox {image: "a:1", strategy: {type: none}}`, `ModelBox {image: "a:1", defaultProbes: none}`},
	},
	"sizes of the cluster": {
		reason:   "the children don't have the field, and the values of a size are stored by admission alone",
		path:     `spec\.resourceType`,
		detail:   `must be a DNS-1123 label|admission has not set the values of this size`,
		examples: []string{`ModelBox {image: "a:1", resourceType: None, resources: {limits: {cpu: "1"}}}`, `ModelBox {image: "a:1", resourceType: largex}`},
	},
	"a step beside a strategy": {
		reason:   "one of two values would have no effect",
		path:     `spec\.rollingUpdate`,
		detail:   `may not be set together with spec\.strategy`,
		examples: []string{`ModelBox {image: "a:1", rollingUpdate: 30%, strategy: {type: Recreate}}`},
	},
	"steps of a strategy without steps": {
		reason:   "one of two values would have no effect",
		path:     `spec\.strategy\.rollingUpdate`,
		detail:   `may not be set if type is Recreate`,
		examples: []string{`ModelBox {image: "a:1", strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}}`},
	},
	"steps of a strategy": {
		reason: "of more than all pods, or above the bound of the schema",
		path:   `spec\.strategy\.rollingUpdate\.max(Surge|Unavailable)`,
		detail: `must be a number of pods from 0 to 1073741823, or a percentage from 0% to 100%`,
		examples: []string{
			`ModelBox {image: "a:1", strategy: {rollingUpdate: {maxSurge: 101%}}}`,
			`ModelBox {image: "a:1", strategy: {rollingUpdate: {maxUnavailable: 1073741824}}}`,
			`ModelBox {image: "a:1", strategy: {rollingUpdate: {maxSurge: 010%}}}`,
		},
	},
	"other CPU and memory than those of the preset": {
		reason:   "the preset says them",
		path:     `spec\.resources`,
		detail:   `resourceType (small|medium|large) is|if resourceType is custom`,
		examples: []string{`ModelBox {image: "a:1", resourceType: small, resources: {limits: {cpu: "7"}}}`},
	},
}
