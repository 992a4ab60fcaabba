// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

var mainContainer = rules.Main{
	Name:  "main",
	Ports: ports,
	Reserved: []rules.Reserved{
		{Field: "image", Instead: "spec.image"},
		{Field: "resources", Instead: "spec.resources"},
		{Field: "ports", Instead: "spec.ports"},
		{Field: "env", Instead: "spec.envs"},
		{Field: "envFrom", Instead: "spec.envFrom"},
		{Field: "readinessProbe", Instead: "spec.readinessProbe"},
		{Field: "livenessProbe", Instead: "spec.livenessProbe"},
		{Field: "startupProbe", Instead: "spec.startupProbe"},
	},
	AppName:  "modelbox",
	Instance: "web",
}

// A template's errors, of which the start of the path is left out.
func template(t *corev1.PodTemplateSpec) field.ErrorList {
	errs := rules.Template(t, mainContainer)
	for _, err := range errs {
		err.Field = strings.TrimPrefix(err.Field, "spec.podTemplate.")
	}
	return errs
}

func TestTemplateMetadata(t *testing.T) {
	const (
		no    = `: Forbidden: has no effect on pods, only labels and annotations have: remove it`
		ours  = `: the operator sets this label, and selectors depend on it: remove it`
		parts = `name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character ` +
			`(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`
		value = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with ` +
			`an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`
	)
	judge(t, map[string]row{
		"nothing":                {`{}`, ``},
		"labels, annotations":    {`{metadata: {labels: {a: "", b.c/d: e}, annotations: {A.B/c: "any thing"}}}`, ``},
		"what generators put in": {`{metadata: {creationTimestamp: null}}`, ``},
		"all else": {`
metadata:
  name: a
  generateName: a
  namespace: a
  selfLink: a
  uid: a
  resourceVersion: "1"
  generation: 1
  creationTimestamp: "2020-01-01T00:00:00Z"
  deletionTimestamp: "2020-01-01T00:00:00Z"
  deletionGracePeriodSeconds: 1
  ownerReferences: [{}]
  finalizers: [a/b]
  managedFields: [{}]`, `
metadata.name` + no + `
metadata.generateName` + no + `
metadata.namespace` + no + `
metadata.selfLink` + no + `
metadata.uid` + no + `
metadata.resourceVersion` + no + `
metadata.generation` + no + `
metadata.creationTimestamp` + no + `
metadata.deletionTimestamp` + no + `
metadata.deletionGracePeriodSeconds` + no + `
metadata.ownerReferences` + no + `
metadata.finalizers` + no + `
metadata.managedFields` + no},
		"the operator's labels as they are": {
			`{metadata: {labels: {app.kubernetes.io/name: modelbox, app.kubernetes.io/instance: web, app.kubernetes.io/managed-by: modelbox-operator}}}`, ``,
		},
		"the operator's labels": {
			`{metadata: {labels: {app.kubernetes.io/name: a, app.kubernetes.io/instance: b, app.kubernetes.io/managed-by: ""}}}`, `
metadata.labels[app.kubernetes.io/instance]: Invalid value: "b"` + ours + `
metadata.labels[app.kubernetes.io/managed-by]: Invalid value: ""` + ours + `
metadata.labels[app.kubernetes.io/name]: Invalid value: "a"` + ours,
		},
		"a wrong key":           {`{metadata: {labels: {"a b": c}}}`, `metadata.labels[a b]: Invalid value: "a b": ` + parts},
		"a wrong value":         {`{metadata: {labels: {a: "b c"}}}`, `metadata.labels[a]: Invalid value: "b c": ` + value},
		"a wrong annotation":    {`{metadata: {annotations: {"a b": c}}}`, `metadata.annotations[a b]: Invalid value: "a b": ` + parts},
		"256 KiB of annotation": {`{metadata: {annotations: {a: ` + strings.Repeat("a", 256<<10-1) + `}}}`, ``},
		"one byte more":         {`{metadata: {annotations: {a: ` + strings.Repeat("a", 256<<10) + `}}}`, `metadata.annotations: Too long: may not be more than 262144 bytes`},
	}, template)
}

func TestTemplateSpec(t *testing.T) {
	const label = "must be a DNS-1123 label: 1 to 63 lower-case letters, digits and dashes, starting and ending with a letter or digit"
	judge(t, map[string]row{
		"restartPolicy: Always":  {`{spec: {restartPolicy: Always}}`, ``},
		"restartPolicy: Never":   {`{spec: {restartPolicy: Never}}`, `spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`},
		"a deadline":             {`{spec: {activeDeadlineSeconds: 0}}`, `spec.activeDeadlineSeconds: Forbidden: pods that are kept running have no deadline: remove it`},
		"an ephemeral container": {`{spec: {ephemeralContainers: [{name: a}]}}`, `spec.ephemeralContainers: Forbidden: only a running pod takes them: use kubectl debug`},
		"claims":                 {`{spec: {resourceClaims: [{name: a}, {name: b}]}}`, ``},
		"a claim twice":          {`{spec: {resourceClaims: [{name: a}, {name: a}]}}`, `spec.resourceClaims[1].name: Duplicate value: "a"`},
		"volumes":                {`{spec: {volumes: [{name: a}, {name: b}]}}`, ``},
		"a volume twice":         {`{spec: {volumes: [{name: a}, {name: a}]}}`, `spec.volumes[1].name: Duplicate value: "a"`},
		"a volume without name":  {`{spec: {volumes: [{name: ""}]}}`, `spec.volumes[0].name: Required value: a name is required`},
		"a volume of wrong name": {`{spec: {volumes: [{name: A}]}}`, `spec.volumes[0].name: Invalid value: "A": ` + label},
	}, template)
}

func TestMainContainer(t *testing.T) {
	const of = `: Forbidden: of the main container is written in spec.`
	judge(t, map[string]row{
		"what is not reserved": {`{spec: {containers: [{name: main, workingDir: /a, args: [b], securityContext: {}, lifecycle: {}}]}}`, ``},
		"empty, which is nothing": {
			`{spec: {containers: [{name: main, image: "", resources: {}, ports: [], env: [], envFrom: [], readinessProbe: null}]}}`, ``,
		},
		"what is reserved": {`
spec:
  containers:
  - {name: a, image: a}
  - name: main
    image: A
    resources: {limits: {a: 1}}
    ports: [{containerPort: 0}]
    env: [{name: ""}]
    envFrom: [{}]
    readinessProbe: {}
    livenessProbe: {}
    startupProbe: {}`, `
spec.containers[1].image` + of + `image
spec.containers[1].resources` + of + `resources
spec.containers[1].ports` + of + `ports
spec.containers[1].env` + of + `envs
spec.containers[1].envFrom` + of + `envFrom
spec.containers[1].readinessProbe` + of + `readinessProbe
spec.containers[1].livenessProbe` + of + `livenessProbe
spec.containers[1].startupProbe` + of + `startupProbe`},
		"requests, and claims": {
			`{spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}}`, `spec.containers[0].resources` + of + `resources`,
		},
		"what is wrong in the rest": {
			`{spec: {containers: [{name: main, imagePullPolicy: always, volumeMounts: [{name: a, mountPath: /a}]}]}}`, `
spec.containers[0].imagePullPolicy: Unsupported value: "always": supported values: "Always", "IfNotPresent", "Never"
spec.containers[0].volumeMounts[0].name: Invalid value: "a": no volume has this name: add one to podTemplate's spec.volumes`,
		},
		"twice": {`{spec: {containers: [{name: main}, {name: main}]}}`, `spec.containers[1].name: Duplicate value: "main"`},
	}, template)
}

// A kind that has no field for probes leaves them to the template.
func TestMainContainerOfAnotherKind(t *testing.T) {
	t.Parallel()
	spec, errs := rules.PodTemplate(raw(t, `
spec: {containers: [{name: main, image: a, readinessProbe: {tcpSocket: {port: http}}, livenessProbe: {tcpSocket: {port: a}}}]}`))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	before := spec.DeepCopy()
	main := mainContainer
	main.Reserved = []rules.Reserved{main.Reserved[0], {Field: "unknown", Instead: "spec.unknown"}}
	want := `
spec.podTemplate.spec.containers[0].image: Forbidden: of the main container is written in spec.image
spec.podTemplate.spec.containers[0].livenessProbe.tcpSocket.port: Invalid value: "a": the container has no port of this name: write a number, or give a port this name`
	if got := lines(rules.Template(spec, main)); got != strings.TrimSpace(want) {
		t.Errorf("errors:\n%s\nwant:%s", got, want)
	}
	if diff := cmp.Diff(before, spec); diff != "" {
		t.Errorf("the template was changed (-before +after):\n%s", diff)
	}
	if errs := rules.Template(nil, main); errs != nil {
		t.Errorf("no template: %v", errs)
	}
}

func TestOtherContainers(t *testing.T) {
	const (
		alone  = `: Forbidden: is for init containers with restartPolicy: Always alone`
		number = `must be a number from 1 to 65535`
		path   = `: Required value: a path in the container is required`
	)
	judge(t, map[string]row{
		"a sidecar": {`
spec:
  volumes: [{name: v}]
  resourceClaims: [{name: c}]
  containers:
  - name: a
    image: b:1
    imagePullPolicy: Never
    ports: [{name: http, containerPort: 1, hostPort: 65535, protocol: UDP}, {containerPort: 1}]
    env: [{name: A}]
    envFrom: [{secretRef: {name: a}}]
    resources: {limits: {cpu: 1}, claims: [{name: c}]}
    volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /b}]
    volumeDevices: [{name: v, devicePath: /c}]
    readinessProbe: {tcpSocket: {port: http}}`, ``},
		"no name":         {`{spec: {containers: [{image: a}]}}`, `spec.containers[0].name: Required value: a name is required`},
		"no image":        {`{spec: {containers: [{name: a}]}}`, `spec.containers[0].image: Required value: write an image reference such as registry.example.com/team/server:1.2`},
		"a name twice":    {`{spec: {containers: [{name: a, image: a}, {name: a, image: a}]}}`, `spec.containers[1].name: Duplicate value: "a"`},
		"init containers": {`{spec: {initContainers: [{name: a, image: a}, {name: b, image: b, restartPolicy: Always, readinessProbe: {grpc: {port: 1}}}]}}`, ``},
		"a name in both":  {`{spec: {containers: [{name: a, image: a}], initContainers: [{name: a, image: a}]}}`, `spec.initContainers[0].name: Duplicate value: "a"`},
		"the main's name": {`{spec: {initContainers: [{name: main, image: a}]}}`, `spec.initContainers[0].name: Duplicate value: "main"`},
		"an init, twice":  {`{spec: {initContainers: [{name: a, image: a}, {name: a, image: a}]}}`, `spec.initContainers[1].name: Duplicate value: "a"`},
		"an init's probes": {`{spec: {initContainers: [{name: a, image: a, lifecycle: {}, readinessProbe: {}, livenessProbe: {}, startupProbe: {}}]}}`, `
spec.initContainers[0].lifecycle` + alone + `
spec.initContainers[0].readinessProbe` + alone + `
spec.initContainers[0].livenessProbe` + alone + `
spec.initContainers[0].startupProbe` + alone},
		"a sidecar's probes": {
			`{spec: {initContainers: [{name: a, image: a, restartPolicy: Always, ports: [{name: x, containerPort: 1}], readinessProbe: {tcpSocket: {port: http}}}]}}`,
			`spec.initContainers[0].readinessProbe.tcpSocket.port: Invalid value: "http": the container has no port of this name: write a number, or give a port this name`,
		},
		"ports": {`{spec: {containers: [{name: a, image: a, ports: [{containerPort: 0, hostPort: -1, name: A, protocol: X}, {containerPort: 65536, hostPort: 65536}]}]}}`, `
spec.containers[0].ports[0].name: Invalid value: "A": must be 1 to 15 lower-case letters, digits and single dashes, at least one of them a letter, with no dash at either end (RFC 6335)
spec.containers[0].ports[0].containerPort: Invalid value: 0: ` + number + `
spec.containers[0].ports[0].hostPort: Invalid value: -1: ` + number + `
spec.containers[0].ports[0].protocol: Unsupported value: "X": supported values: "TCP", "UDP", "SCTP"
spec.containers[0].ports[1].containerPort: Invalid value: 65536: ` + number + `
spec.containers[0].ports[1].hostPort: Invalid value: 65536: ` + number},
		"ports twice": {`{spec: {containers: [{name: a, image: a, ports: [{containerPort: 1, name: x}, {containerPort: 1, protocol: TCP}, {containerPort: 2, name: x}]}]}}`, `
spec.containers[0].ports[2].name: Duplicate value: "x"
spec.containers[0].ports[1].containerPort: Duplicate value: 1`},
		"env":       {`{spec: {containers: [{name: a, image: a, env: [{name: A}, {name: A}], envFrom: [{}]}]}}`, "spec.containers[0].env[1].name: Duplicate value: \"A\"\nspec.containers[0].envFrom[0]: Invalid value: exactly one of configMapRef and secretRef is required"},
		"resources": {`{spec: {containers: [{name: a, image: a, resources: {limits: {cpu: -1}, claims: [{name: b}]}}]}}`, "spec.containers[0].resources.limits[cpu]: Invalid value: \"-1\": must be 0 or more\nspec.containers[0].resources.claims[0].name: Invalid value: \"b\": must be the name of one of podTemplate's spec.resourceClaims"},
		"mounts": {`
spec:
  volumes: [{name: v}]
  containers: [{name: a, image: a, volumeMounts: [{name: v, mountPath: ""}, {name: "", mountPath: /a}, {name: v, mountPath: /a}]}]`, `
spec.containers[0].volumeMounts[0].mountPath` + path + `
spec.containers[0].volumeMounts[1].name: Invalid value: "": no volume has this name: add one to podTemplate's spec.volumes
spec.containers[0].volumeMounts[2].mountPath: Duplicate value: "/a"`},
		"devices": {`
spec:
  volumes: [{name: v}]
  initContainers: [{name: a, image: a, volumeDevices: [{name: v, devicePath: ""}, {name: w, devicePath: /a}, {name: v, devicePath: /a}]}]`, `
spec.initContainers[0].volumeDevices[0].devicePath` + path + `
spec.initContainers[0].volumeDevices[1].name: Invalid value: "w": no volume has this name: add one to podTemplate's spec.volumes
spec.initContainers[0].volumeDevices[2].devicePath: Duplicate value: "/a"`},
	}, template)
}

// Volumes are looked up in another way when there are many.
func TestManyVolumes(t *testing.T) {
	t.Parallel()
	template := &corev1.PodTemplateSpec{}
	read(t, `{spec: {containers: [{name: main}]}}`, template)
	mounts := &template.Spec.Containers[0].VolumeMounts
	for c := range 26 {
		name := "v" + string(rune('a'+c))
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: name})
		*mounts = append(*mounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	if errs := rules.Template(template, mainContainer); len(errs) > 0 {
		t.Errorf("all are there: %v", errs)
	}
	(*mounts)[25].Name = "w"
	want := `spec.podTemplate.spec.containers[0].volumeMounts[25].name: Invalid value: "w": no volume has this name: add one to podTemplate's spec.volumes`
	if got := lines(rules.Template(template, mainContainer)); got != want {
		t.Errorf("one is not: %s, want %s", got, want)
	}
}
