// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// correction is a kind of which objects are spoilt and corrected again: a valid object,
// and bad values for some of its fields, by their place. A field that the object lacks
// is removed to correct it.
type correction struct {
	gvk  schema.GroupVersionKind
	spec string
	bad  map[string][]any
}

var corrections = []correction{
	{
		schema.GroupVersionKind{Group: "model.github.com", Version: "v1", Kind: "ModelBox"},
		`{name: main, image: "server:1", replicas: 2, schedules: [{name: a, schedule: "@daily", timeZone: Etc/UTC, replicas: 1}], resourceType: custom, rollingUpdate: 30%, serviceType: NodePort, defaultProbes: Enabled,
resources: {limits: {cpu: "2", memory: 4Gi}, requests: {cpu: "1"}}, paused: false,
ports: [{name: http, port: 80, targetPort: 8080, nodePort: 30080, protocol: TCP, appProtocol: http}, {name: side, port: 81, targetPort: sideport, protocol: TCP}],
envs: [{name: A, value: b}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], envFrom: [{prefix: P_, secretRef: {name: s}}],
readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 5}, livenessProbe: {tcpSocket: {port: 8080}, failureThreshold: 3},
restartOnChange: Referenced, holdChanges: All, windows: [{schedule: "@daily", timeZone: Asia/Shanghai, duration: 24h}], skipDates: ["2026-12-24"], disruption: {maxUnavailable: 30%}, onFailedRollout: Return, minReadySeconds: 5, revisionHistoryLimit: 3,
podMetadata: {labels: {pool: a}, annotations: {note: b}}, serviceMetadata: {labels: {pool: a}}, deploymentMetadata: {annotations: {note: b}},
service: {externalTrafficPolicy: Local, sessionAffinity: ClientIP},
route: {hosts: [a.example.com], path: /v1, gateway: {name: public, namespace: infra, listener: https}, tls: true, split: [{name: next, weight: 10}, {name: last, weight: 20}]}, monitoring: {port: 8080, path: /stats, interval: 30s},` + template + `}`,
		with(badServer, with(badTemplate, with(badWindows, map[string][]any{
			"podMetadata/labels/pool": {"a b"}, "serviceMetadata/labels/pool": {"a b"}, "podMetadata/labels/app.kubernetes.io~1name": {"other"},
			"podMetadata/labels/squad": {"twice"}, "deploymentMetadata/annotations/model.github.com~1desired-hash": {"1"}, "minReadySeconds": {-1, 86401},
			"revisionHistoryLimit": {-1, 1001}, "service/externalTrafficPolicy": {"Other"}, "service/internalTrafficPolicy": {"Other"}, "service/sessionAffinity": {"Other"},
			"service/trafficDistribution": {"Other"}, "service/loadBalancerClass": {"a b"}, "service/loadBalancerSourceRanges": {[]any{"10.0.0.0/8"}},
			"disruption/maxUnavailable": {0, "0%"}, "name": {"A B"}, "image": {"A B"}, "replicas": {-1}, "resourceType": {"A B"},
			"rollingUpdate": {0, "0%"}, "serviceType": {"Other"}, "defaultProbes": {"Perhaps"}, "onFailedRollout": {"Undo"},
			"resources/limits/cpu": {"-1"},
			"ports/0/name":         {"A B"}, "ports/0/port": {0, 70000}, "ports/0/targetPort": {"A B"}, "ports/0/nodePort": {70000},
			"ports/0/protocol": {"XYZ"}, "ports/0/appProtocol": {"a b"}, "ports/1/protocol": {"ABC"},
			"envs/0/name": {"A=B"}, "envs/1/valueFrom/fieldRef/fieldPath": {"metadata.nothing"}, "envFrom/0/prefix": {"a=b"},
			"envFrom/0/secretRef/name": {"A B"}, "readinessProbe/httpGet/port": {0, "none"}, "readinessProbe/periodSeconds": {-1},
			"livenessProbe/failureThreshold": {-1}, "livenessProbe/tcpSocket/port": {0},
		}))),
	},
	{
		schema.GroupVersionKind{Group: "app.huolala.cn", Version: "v1", Kind: "App"},
		`{image: "server:1", replicas: 2, resources: {limits: {cpu: "2"}}, envs: [{name: A, value: b}], schedules: [{name: a, schedule: "@daily", timeZone: Etc/UTC, replicas: 1}],
ports: [{name: http, port: 80, targetPort: 8080, protocol: TCP}, {name: side, port: 81, targetPort: sideport, protocol: TCP}],
restartOnChange: Referenced, holdChanges: All, windows: [{schedule: "@daily", timeZone: Asia/Shanghai, duration: 24h}], skipDates: ["2026-12-24"], disruption: {minAvailable: 1}, onFailedRollout: Return, minReadySeconds: 5, podMetadata: {labels: {pool: a}},
service: {sessionAffinity: ClientIP},
route: {hosts: [a.example.com], path: /v1, gateway: {name: public, namespace: infra, listener: https}, tls: true, split: [{name: next, weight: 10}, {name: last, weight: 20}]}, monitoring: {port: 8080, path: /stats, interval: 30s},` + template + `}`,
		with(badServer, with(badTemplate, with(badWindows, map[string][]any{
			"minReadySeconds": {600}, "podMetadata/labels/pool": {"a b"}, "service/sessionAffinity": {"Other"}, "service/externalTrafficPolicy": {"Local"},
			"disruption/minAvailable": {0, "101%"}, "image": {"A B"}, "replicas": {-1}, "resources/limits/cpu": {"-1"}, "envs/0/name": {"A=B"},
			"ports/0/port": {0}, "ports/0/name": {"A B"}, "ports/1/protocol": {"ABC"},
		}))),
	},
	{
		schema.GroupVersionKind{Group: "mydomain.com", Version: "v1beta1", Kind: "Genericdaemon"},
		`{image: "syslog:1", label: tier=edge, rollingUpdate: 20%, resources: {limits: {cpu: "1"}}, envs: [{name: A, value: b}],
imagePullPolicy: Always, command: [a], args: [b], envFrom: [{secretRef: {name: s}}],
restartOnChange: Referenced, holdChanges: All, windows: [{schedule: "@daily", timeZone: Asia/Shanghai, duration: 24h}], skipDates: ["2026-12-24"],` + template + `}`,
		with(badTemplate, with(badWindows, map[string][]any{
			"imagePullPolicy": {"Other"}, "envFrom/0/secretRef/name": {"A B"}, "terminationGracePeriodSeconds": {-1},
			"image": {"A B"}, "label": {"a b=c d"}, "rollingUpdate": {0}, "resources/limits/cpu": {"-1"}, "envs/0/name": {"A=B"},
		})),
	},
	{
		schema.GroupVersionKind{Group: "extension.k8s.io", Version: "v1", Kind: "UnitedDeployment"},
		`{deploymentName: web, replicas: 3, schedules: [{name: a, schedule: "@daily", timeZone: Etc/UTC, replicas: 1}]}`,
		map[string][]any{
			"deploymentName": {"A B", ""}, "replicas": {-1},
			"schedules/0/name": {"A B"}, "schedules/0/schedule": {"never"}, "schedules/0/timeZone": {"Mars/Base"}, "schedules/0/replicas": {-1},
		},
	},
	{
		schema.GroupVersionKind{Group: "mtsre.meitu.com", Version: "v1", Kind: "Eru"},
		`{deploymentName: web, enabled: true, schedule: "0 3 * * *", timeZone: Asia/Shanghai, startingDeadlineSeconds: 60, jitterSeconds: 5, historyLimit: 3,
windows: [{schedule: "@daily", timeZone: Asia/Shanghai, duration: 24h}], skipDates: ["2026-12-24"]}`,
		with(badWindows, map[string][]any{
			"deploymentName": {"A B"}, "schedule": {"never", "0 0 30 2 *"}, "timeZone": {"Mars/Base"},
			"startingDeadlineSeconds": {-1}, "jitterSeconds": {-1}, "historyLimit": {101},
		}),
	},
	{
		schema.GroupVersionKind{Group: "app.huolala.cn", Version: "v1", Kind: "App"},
		`{image: "server:1", autoscaling: {minReplicas: 2, maxReplicas: 4, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}],
behavior: {scaleUp: {tolerance: "0.05"}, scaleDown: {stabilizationWindowSeconds: 600, selectPolicy: Min, policies: [{type: Pods, value: 1, periodSeconds: 60}]}}}}`,
		map[string][]any{
			"autoscaling/behavior/scaleUp/tolerance": {"-1"}, "autoscaling/behavior/scaleDown/stabilizationWindowSeconds": {-1, 3601}, "autoscaling/behavior/scaleDown/selectPolicy": {"Most"},
			"autoscaling/behavior/scaleDown/policies/0/type": {"Nodes", ""}, "autoscaling/behavior/scaleDown/policies/0/value": {0, -1},
			"autoscaling/behavior/scaleDown/policies/0/periodSeconds": {0, 1801},
			"autoscaling/minReplicas":                                 {-1, 0}, "autoscaling/maxReplicas": {0, -1}, "autoscaling/metrics/0/type": {"Other", "Pods"},
			"autoscaling/metrics/0/resource/name": {""}, "autoscaling/metrics/0/resource/target/averageUtilization": {0},
		},
	},
	{
		schema.GroupVersionKind{Group: "model.github.com", Version: "v1", Kind: "ModelBox"},
		`{image: "server:1", autoscaling: {minReplicas: 0, maxReplicas: 4, prometheus: {serverAddress: "http://prometheus:9090", query: "sum(a)", target: 16, cooldownSeconds: 60, additionalQueries: [{serverAddress: "https://b", query: b, target: 2}]}}}`,
		map[string][]any{
			"autoscaling/minReplicas": {-1, 5}, "autoscaling/prometheus/cooldownSeconds": {-1, 604801},
			"autoscaling/prometheus/serverAddress": {"prometheus:9090"}, "autoscaling/prometheus/query": {""}, "autoscaling/prometheus/target": {"0", "-1"},
			"autoscaling/prometheus/additionalQueries/0/serverAddress": {"b"}, "autoscaling/prometheus/additionalQueries/0/query": {""},
			"autoscaling/prometheus/additionalQueries/0/target": {"0", "-1"},
		},
	},
	{
		schema.GroupVersionKind{Group: "app.huolala.cn", Version: "v1", Kind: "App"},
		`{image: "server:1", autoscaling: {minReplicas: 2, maxReplicas: 4, prometheus: {serverAddress: "http://prometheus:9090", query: "sum(a)", target: 16, idleReplicas: 0, cooldownSeconds: 60}}}`,
		map[string][]any{
			"autoscaling/prometheus/idleReplicas": {1, -1}, "autoscaling/prometheus/cooldownSeconds": {-1}, "autoscaling/maxReplicas": {1},
		},
	},
}

const template = `podTemplate: {metadata: {labels: {team: a, squad: a}}, spec: {hostNetwork: false, terminationGracePeriodSeconds: 30, serviceAccountName: sa,
nodeSelector: {disk: ssd}, volumes: [{name: data, emptyDir: {sizeLimit: 1Gi}}], imagePullSecrets: [{name: s}],
containers: [{name: side, image: "side:1", resources: {limits: {cpu: "1"}}, ports: [{name: sideport, containerPort: 9090}],
env: [{name: X, value: "y"}], volumeMounts: [{name: data, mountPath: /data}]}]}}`

var badWindows = map[string][]any{
	"windows/0/schedule": {"never"}, "windows/0/timeZone": {"Mars/Base"}, "windows/0/duration": {"30s", "169h"}, "skipDates/0": {"2026-02-30"},
}

// badServer is what a ModelBox and an App have in common.
var badServer = map[string][]any{
	"route/hosts/0": {"A B", "a.*.b"}, "route/path": {"v1", "/a//b", "/a/.."}, "route/gateway/name": {"A B"}, "route/gateway/namespace": {"a.b"}, "route/gateway/listener": {"A B"},
	"route/split/0/name": {"A B", "last", ""}, "route/split/0/weight": {0, 101, 81},
	"monitoring/port": {0, "A B"}, "monitoring/path": {"stats", "/a b"}, "monitoring/interval": {"0s", "25h", "1d"},
	"schedules/0/name": {"A B"}, "schedules/0/schedule": {"never"}, "schedules/0/timeZone": {"Mars/Base"}, "schedules/0/replicas": {-1},
}

var badTemplate = map[string][]any{
	"podTemplate/spec/unknown":                            {1, map[string]any{}},
	"podTemplate/spec/restartPolicy":                      {"Never"},
	"podTemplate/metadata/labels/team":                    {"a b"},
	"podTemplate/spec/volumes/0/emptyDir/sizeLimit":       {"-1"},
	"podTemplate/spec/volumes/0/name":                     {"A B"},
	"podTemplate/spec/containers/0/image":                 {"A B"},
	"podTemplate/spec/containers/0/imagePullPolice":       {"Always"},
	"podTemplate/spec/containers/0/resources/limits/cpu":  {"-1"},
	"podTemplate/spec/containers/0/ports/0/containerPort": {0},
	"podTemplate/spec/containers/0/env/0/name":            {"A=B"},
}

// wrongTypes are values of podTemplate that its fields cannot hold.
var wrongTypes = map[string][]any{
	"podTemplate/spec/hostNetwork":                           {5, "yes"},
	"podTemplate/metadata/labels/team":                       {5},
	"podTemplate/spec/terminationGracePeriodSeconds":         {1.5, "x"},
	"podTemplate/spec/nodeSelector/disk":                     {true},
	"podTemplate/spec/volumes/0/emptyDir/sizeLimit":          {true, "much"},
	"podTemplate/spec/imagePullSecrets":                      {5},
	"podTemplate/spec/containers/0/image":                    {5},
	"podTemplate/spec/containers/0/resources/limits/cpu":     {true, "much"},
	"podTemplate/spec/containers/0/ports/0/containerPort":    {"x"},
	"podTemplate/spec/containers/0/env/0/name":               {5},
	"podTemplate/spec/containers/0/volumeMounts/0/mountPath": {7},
}

func with(a, b map[string][]any) map[string][]any {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// TestErrorsAreCorrectedOneByOne spoils valid objects in several fields at once, as they
// could be stored while the webhooks were away, and corrects the fields one by one, in
// any order. Both webhooks admit each step, and none that makes another field bad. A wrong type
// of a field that has a schema cannot be stored.
func TestErrorsAreCorrectedOneByOne(t *testing.T) {
	t.Parallel()
	const rounds = 100
	mux := webhooks(t)
	for _, kind := range corrections {
		t.Run(kind.gvk.Kind, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(rounds) {
				correct(t, mux, kind, seed)
			}
		})
	}
}

// TestWrongTypesAreCorrectedOneByOne is the same for values of a wrong type in podTemplate. They are
// reported before and without other errors, so those of the rules are not known beside them.
func TestWrongTypesAreCorrectedOneByOne(t *testing.T) {
	t.Parallel()
	mux := webhooks(t)
	for _, kind := range corrections {
		if !strings.Contains(kind.spec, template) {
			continue
		}
		kind.bad = wrongTypes
		for seed := range uint64(30) {
			correct(t, mux, kind, seed)
		}
	}
}

// FuzzCorrections is the same with other seeds.
func FuzzCorrections(f *testing.F) {
	mux := webhooks(f)
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		for _, kind := range corrections {
			correct(t, mux, kind, seed)
		}
	})
}

func correct(t *testing.T, mux *http.ServeMux, kind correction, seed uint64) {
	t.Helper()
	(&corrector{t: t, mux: mux, kind: kind, random: rand.New(rand.NewPCG(seed, 1))}).run()
	if t.Failed() {
		t.Fatalf("the seed is %d", seed)
	}
}

type corrector struct {
	t      *testing.T
	mux    *http.ServeMux
	kind   correction
	random *rand.Rand
	valid  any
}

func (c *corrector) run() {
	c.t.Helper()
	if err := yaml.Unmarshal([]byte(c.kind.spec), &c.valid); err != nil {
		c.t.Fatal(err)
	}
	if refusal := c.update(c.valid, c.valid); refusal != "" {
		c.t.Fatalf("the valid object is refused: %s", refusal)
	}
	places := slices.Sorted(maps.Keys(c.kind.bad))
	c.shuffle(places)
	spoilt, good := places[:min(len(places)-1, 1+c.random.IntN(6))], places[len(places)-1]
	stored := clone(c.valid)
	for _, place := range spoilt {
		bad := c.kind.bad[place]
		stored = put(stored, place, bad[c.random.IntN(len(bad))])
	}
	for _, bad := range c.kind.bad[good] {
		if worse := put(clone(stored), good, bad); c.update(stored, worse) == "" {
			c.t.Errorf("%v is admitted in %s: %s", bad, good, text(worse))
		}
	}
	c.shuffle(spoilt)
	c.correct(stored, spoilt)
}

// correct corrects places of a stored object one by one.
func (c *corrector) correct(stored any, places []string) {
	c.t.Helper()
	for _, place := range places {
		was, _ := get(c.valid, place)
		better := put(clone(stored), place, was)
		if refusal := c.update(stored, better); refusal != "" {
			c.t.Errorf("the correction of %s is refused: %s\nstored:    %s\ncorrected: %s", place, refusal, text(stored), text(better))
		}
		stored = better
	}
}

func (c *corrector) shuffle(places []string) {
	c.random.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
}

func (c *corrector) object(spec any) []byte {
	return []byte(text(map[string]any{
		"apiVersion": c.kind.gvk.GroupVersion().String(), "kind": c.kind.gvk.Kind,
		"metadata": map[string]any{"name": "obj", "namespace": "default"}, "spec": spec,
	}))
}

// update sends an update of a spec to both webhooks, one after the other, and returns a
// refusal.
func (c *corrector) update(before, after any) string {
	c.t.Helper()
	old, updated := c.object(before), c.object(after)
	answer := c.ask(admission.MutatePath(c.kind.gvk), old, updated)
	if !answer.Allowed {
		return "mutating: " + answer.Result.Message
	}
	if len(answer.Patch) > 0 {
		ops, err := jsonpatch.DecodePatch(answer.Patch)
		if err != nil {
			c.t.Fatal(err)
		}
		if updated, err = ops.Apply(updated); err != nil {
			c.t.Fatal(err)
		}
	}
	if answer := c.ask(admission.ValidatePath(c.kind.gvk), old, updated); !answer.Allowed {
		return "validating: " + answer.Result.Message
	}
	return ""
}

func (c *corrector) ask(path string, old, updated []byte) *admissionv1.AdmissionResponse {
	c.t.Helper()
	body := text(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
		"uid": "u", "operation": "UPDATE", "name": "obj", "namespace": "default", "object": json.RawMessage(updated), "oldObject": json.RawMessage(old),
		"kind": map[string]any{"group": c.kind.gvk.Group, "version": c.kind.gvk.Version, "kind": c.kind.gvk.Kind},
	}})
	answer := post(c.mux, path, body)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &review); err != nil || review.Response == nil {
		c.t.Fatalf("answered %s (%v)", answer, err)
	}
	return review.Response
}

func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func clone(value any) (out any) {
	if err := json.Unmarshal([]byte(text(value)), &out); err != nil {
		panic(err)
	}
	return out
}

// get returns what is at a place such as ports/0/name, and whether there is something.
func get(tree any, place string) (any, bool) {
	key, rest, deeper := strings.Cut(place, "/")
	inner, ok := step(tree, key)
	if !ok || !deeper {
		return inner, ok
	}
	return get(inner, rest)
}

func step(tree any, key string) (any, bool) {
	switch tree := tree.(type) {
	case map[string]any:
		inner, ok := tree[key]
		return inner, ok
	case []any:
		return tree[index(key)], true
	}
	return nil, false
}

// put puts a value at a place, or takes away what is there if it is nil.
func put(tree any, place string, value any) any {
	key, rest, deeper := strings.Cut(place, "/")
	if deeper {
		inner, ok := step(tree, key)
		if !ok {
			panic("there is no " + place)
		}
		value = put(inner, rest, value)
	}
	switch tree := tree.(type) {
	case map[string]any:
		if tree[key] = value; value == nil {
			delete(tree, key)
		}
	case []any:
		tree[index(key)] = value
	}
	return tree
}

func index(key string) (i int) {
	if _, err := fmt.Sscan(key, &i); err != nil {
		panic(err)
	}
	return i
}
