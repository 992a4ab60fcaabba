// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// Pods restart if and only if the pod template changes. These tests compare what is built for a
// stored object with what is built after an update of it.

// boxOf reads a ModelBox from the YAML of its spec.
func boxOf(t *testing.T, spec string) *modelv1.ModelBox {
	t.Helper()
	box := &modelv1.ModelBox{}
	box.Name, box.UID = "web", "6a1e2c55-0000-4000-8000-000000000000"
	if err := yaml.UnmarshalStrict([]byte(spec), &box.Spec); err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	return box
}

// stored010 returns an object as 0.1.0 stored it: without the defaults that are newer.
func stored010(t *testing.T, spec string) *modelv1.ModelBox {
	t.Helper()
	box, written := boxOf(t, spec), boxOf(t, spec)
	modelbox.Default(box)
	box.Spec.StartupProbe, box.Spec.ProgressDeadlineSeconds = written.Spec.StartupProbe, written.Spec.ProgressDeadlineSeconds
	return box
}

// templateOf returns the pod template that the controller builds for a stored object, as JSON.
func templateOf(t *testing.T, stored *modelv1.ModelBox) string {
	t.Helper()
	box := stored.DeepCopy()
	modelbox.DefaultStored(box)
	template, err := modelbox.Workload(box, models.Fetcher{Image: "modelbox-controller:test"}).Template()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// changed returns an object with a JSON merge patch of its spec, as a client sends it.
func changed(t *testing.T, box *modelv1.ModelBox, patch string) *modelv1.ModelBox {
	t.Helper()
	var change, spec map[string]any
	data, err := json.Marshal(box.Spec)
	if err == nil {
		err = json.Unmarshal(data, &spec)
	}
	if err == nil {
		err = yaml.Unmarshal([]byte(patch), &change)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range change {
		if spec[name] = value; value == nil {
			delete(spec, name)
		}
	}
	if data, err = json.Marshal(spec); err != nil {
		t.Fatal(err)
	}
	out := boxOf(t, string(data))
	out.ManagedFields = box.ManagedFields
	return out
}

// admitted returns an update as it is stored.
func admitted(sent, old *modelv1.ModelBox) *modelv1.ModelBox {
	box := sent.DeepCopy()
	kind := modelbox.Kind()
	kind.SetDefaults(box, old)
	return box
}

// specs010 are specs as users of 0.1.0 wrote them.
var specs010 = []string{
	`{image: a:1}`,
	`{image: a:1, ports: [{port: 80}]}`,
	`{image: a:1, name: main, ports: [{port: 80, targetPort: 8080, nodePort: 30010}, {port: 53, protocol: UDP}]}`,
	`{image: a:1, resourceType: large, ports: [{name: http, port: 80}], readinessProbe: {periodSeconds: 5}}`,
	`{image: a:1, ports: [{port: 80, targetPort: http}, {port: 8080, name: http}]}`,
	`{image: a:1, resources: {limits: {cpu: 500m, nvidia.com/gpu: 1}}, ports: [{port: 80}], livenessProbe: {httpGet: {port: 80}}}`,
	`{image: a:1, ports: [{port: 80}], startupProbe: {exec: {command: [x]}, failureThreshold: 60}}`,
	`{image: a:1, ports: [{port: 80}], defaultProbes: Disabled, envs: [{name: A, value: b}]}`,
	`{image: a:1, ports: [{port: 80}], podTemplate: {metadata: {labels: {a: b}}, spec: {terminationGracePeriodSeconds: 60, containers: [{name: web, args: [x]}]}}}`,
	// What 0.1.0 left behind: a part of a preset beside resources of a client, and a name of a
	// port that was one of several.
	`{image: a:1, resourceType: custom, resources: {limits: {cpu: 500m, memory: 2Gi}}, ports: [{port: 80, name: tcp-80}]}`,
}

// edits010 are changes that no pod should restart for.
var edits010 = []string{
	`{replicas: 0}`, `{replicas: 7}`, `{paused: true}`, `{rollingUpdate: 1}`, `{strategy: {type: Recreate}}`,
	`{strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}`, `{progressDeadlineSeconds: 90}`, `{progressDeadlineSeconds: null}`,
	`{serviceType: LoadBalancer}`, `{serviceType: null}`, `{defaultProbes: null}`, `{rollingUpdate: null, replicas: null}`,
}

// owners are who set the fields, as managedFields have it. The last one has the fields that
// admission derived, but for half of a preset.
var owners = []string{
	``, `{}`, `{"f:image":{}}`, `{"f:image":{},"f:resourceType":{},"f:livenessProbe":{"f:tcpSocket":{"f:port":{}}}}`,
	`{"f:resourceType":{},"f:resources":{"f:limits":{"f:cpu":{}}}}`,
}

func ownedBy(fields string) []metav1.ManagedFieldsEntry {
	if fields == "" {
		return nil
	}
	return []metav1.ManagedFieldsEntry{{Manager: "person", Operation: "Update", FieldsV1: metav1.NewFieldsV1(`{"f:spec":` + fields + `}`)}}
}

// serviceEdit changes what only the Service has of a port.
func serviceEdit(r *rand.Rand, box *modelv1.ModelBox) {
	if len(box.Spec.Ports) == 0 {
		return
	}
	port := &box.Spec.Ports[r.IntN(len(box.Spec.Ports))]
	switch r.IntN(3) {
	case 0:
		port.NodePort = 30000 + r.Int32N(9)
	case 1:
		port.AppProtocol = new("http")
	case 2:
		if !modelv1.IsUnset(port.TargetPort) && port.TargetPort.StrVal == "" {
			port.Port += 1000 // The container's port stays.
		}
	}
}

// An upgrade restarts no pod, and neither does an update that changes no field of the pod
// template: a scale, a pause, another strategy or Service, one after the other.
func TestNoPodRestartsForAChangeOfOtherFields(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		spec := specs010[r.IntN(len(specs010))]
		stored := stored010(t, spec)
		want := templateOf(t, stored)
		if r.IntN(3) == 0 {
			stored.Spec.DefaultProbes = "" // As if admission had never seen it.
			want = templateOf(t, stored)
		}
		for range 3 {
			edit := edits010[r.IntN(len(edits010))]
			if edit == `{defaultProbes: null}` && stored.Spec.DefaultProbes == modelv1.DefaultProbesDisabled {
				continue // Enables them.
			}
			sent := changed(t, stored, edit)
			if r.IntN(3) == 0 {
				edit += " and the Service"
				serviceEdit(r, sent)
			}
			sent.ManagedFields = ownedBy(owners[r.IntN(len(owners))])
			next := admitted(sent, stored)
			if diff := cmp.Diff(want, templateOf(t, next)); diff != "" {
				t.Fatalf("seed %d: %s with managedFields %v restarts the pods of %s:\n%s", seed, edit, sent.ManagedFields, spec, diff)
			}
			stored = next
		}
	}
}

// The controller builds for an object of 0.1.0 what it built before there were newer defaults.
func TestTheUpgradeRestartsNoPod(t *testing.T) {
	t.Parallel()
	for _, spec := range specs010 {
		stored := stored010(t, spec)
		before, err := modelbox.Workload(stored, models.Fetcher{Image: "modelbox-controller:test"}).Template()
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(data), templateOf(t, stored)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", spec, diff)
		}
	}
}

// fieldEdits has a change of each field of the spec.
var fieldEdits = map[string]string{
	"name": `main`, "image": `a:2`, "imagePullPolicy": `Always`, "imagePullSecrets": `[{name: a}]`, "command": `[a]`, "args": `[a]`,
	"replicas": `7`, "schedules": `[{name: a, schedule: "@daily", replicas: 3}]`, "resourceType": `large`, "resources": `{limits: {cpu: "3"}}`, "sharedMemory": `1Gi`, "rollingUpdate": `30%`,
	"strategy": `{type: Recreate}`, "progressDeadlineSeconds": `90`, "terminationGracePeriodSeconds": `5`,
	"ports": `[{port: 81, targetPort: 81, protocol: TCP}]`, "serviceType": `LoadBalancer`, "envs": `[{name: A}]`, "envFrom": `[{secretRef: {name: a}}]`,
	"readinessProbe": `{tcpSocket: {port: 80}, periodSeconds: 5}`, "livenessProbe": `{tcpSocket: {port: 80}, periodSeconds: 5}`,
	"startupProbe": `{exec: {command: [a]}}`, "defaultProbes": `Disabled`, "podTemplate": `{spec: {nodeName: a}}`, "paused": `true`,
	"scheduling": `{nodeSelector: {pool: gpu}}`, "restartOnChange": `Referenced`, "disruption": `{maxUnavailable: 1}`, "autoscaling": `{maxReplicas: 3}`,
	"route": `{hosts: [a.example.com], gateway: {name: a}}`, "monitoring": `{port: 80}`,
	"podMetadata": `{labels: {a: b}}`, "deploymentMetadata": `{labels: {a: b}}`, "serviceMetadata": `{annotations: {a: b}}`,
	"minReadySeconds": `10`, "revisionHistoryLimit": `2`, "service": `{sessionAffinity: ClientIP}`,
	"windows": `[{schedule: "@daily", timeZone: Etc/UTC, duration: 1h}]`, "skipDates": `["2026-12-24"]`, "holdChanges": `All`, "onFailedRollout": `Return`,
	"selector": `{a: b}`, "model": `{uri: "https://models.example.com/a.bin", mountPath: /m, sizeLimit: 1Gi}`, "modelFileURL": `https://models.example.com/a.bin`,
	"models": `[{name: draft, uri: "https://models.example.com/a.bin", mountPath: /draft, sizeLimit: 1Gi}]`,
}

// Newer defaults are added with a change of a field if and only if that field is in the pod
// template. progressDeadlineSeconds shows it, because every object gets one.
func TestNewerDefaultsComeWithAChangeOfThePodTemplate(t *testing.T) {
	t.Parallel()
	for _, field := range reflect.VisibleFields(reflect.TypeFor[modelv1.ModelBoxSpec]()) {
		if field.Anonymous {
			continue // Its fields are among the others.
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edit, ok := fieldEdits[name]
			if !ok {
				t.Fatal("add a change of this field")
			}
			stored := stored010(t, `{image: a:1, ports: [{port: 80}]}`)
			sent := changed(t, stored, "{"+name+": "+edit+"}")
			sent.ManagedFields = ownedBy(`{"f:` + name + `":{}}`)
			next := admitted(sent, stored)
			restarts := templateOf(t, next) != templateOf(t, stored)
			added := next.Spec.ProgressDeadlineSeconds != nil && name != "progressDeadlineSeconds"
			if restarts != added {
				t.Errorf("the pods restart: %t, and newer defaults are added: %t", restarts, added)
			}
			if hasStartup := next.Spec.StartupProbe != nil; hasStartup && !restarts {
				t.Error("the startup probe is not in the pod template")
			}
		})
	}
}
