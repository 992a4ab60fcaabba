// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox_test

import (
	"os"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
	"sigs.k8s.io/yaml"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

// What is filled in for an object of nothing but an image, less what a test is
// about.
const (
	fixed = `
name: web
image: a:1
replicas: 1
rollingUpdate: 25%
defaultProbes: Enabled
`
	small = `
resourceType: small
resources: {limits: {cpu: "1", memory: 2Gi}, requests: {cpu: "1", memory: 2Gi}}
`
	clusterIP = `
serviceType: ClusterIP
`
	nodePort = `
serviceType: NodePort
`
	readyLive80 = `
readinessProbe: {tcpSocket: {port: 80}}
livenessProbe: {tcpSocket: {port: 80}}
`
	probes80    = readyLive80 + startup80
	deadline600 = `
progressDeadlineSeconds: 600
`
	startup80 = `
startupProbe: {tcpSocket: {port: 80}, periodSeconds: 2, failureThreshold: 900}
progressDeadlineSeconds: 2400
`
)

func TestDefaultOnCreate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ spec, want string }{
		"nothing but an image": {
			spec: `{image: a:1}`,
			want: fixed + deadline600 + small + clusterIP,
		},
		"all that does not depend on anything, written": {
			spec: `{image: a:1, name: other, replicas: 0, rollingUpdate: 1, defaultProbes: Disabled, resourceType: small, serviceType: LoadBalancer}`,
			want: small + deadline600 + `
image: a:1
name: other
replicas: 0
rollingUpdate: 1
defaultProbes: Disabled
serviceType: LoadBalancer`,
		},
		"medium": {
			spec: `{image: a:1, resourceType: medium}`,
			want: fixed + deadline600 + clusterIP + `
resourceType: medium
resources: {limits: {cpu: "2", memory: 4Gi}, requests: {cpu: "2", memory: 4Gi}}`,
		},
		"resources are custom": {
			spec: `{image: a:1, resources: {limits: {cpu: "3"}}}`,
			want: fixed + deadline600 + clusterIP + `
resourceType: custom
resources: {limits: {cpu: "3"}}`,
		},
		"empty resources are resources": {
			spec: `{image: a:1, resources: {}}`,
			want: fixed + deadline600 + clusterIP + `
resourceType: custom
resources: {}`,
		},
		"a preset with other resources is left to Validate": {
			spec: `{image: a:1, resourceType: small, resources: {limits: {cpu: "3"}}}`,
			want: fixed + deadline600 + clusterIP + `
resourceType: small
resources: {limits: {cpu: "3"}}`,
		},
		"one port": {
			spec: `{image: a:1, ports: [{port: 80}]}`,
			want: fixed + small + clusterIP + probes80 + `ports: [{port: 80, targetPort: 80, protocol: TCP}]`,
		},
		"a nodePort makes the Service a NodePort": {
			spec: `{image: a:1, ports: [{port: 80}, {port: 81, nodePort: 30010}]}`,
			want: fixed + small + nodePort + probes80 + `
ports:
- {port: 80, name: tcp-80, targetPort: 80, protocol: TCP}
- {port: 81, name: tcp-81, targetPort: 81, protocol: TCP, nodePort: 30010}`,
		},
		"no probe where all ports are a sidecar's": {
			spec: `{image: a:1, ports: [{port: 443, targetPort: tls}]}`,
			want: fixed + deadline600 + small + clusterIP + `ports: [{port: 443, targetPort: tls, protocol: TCP}]`,
		},
		"one probe is written": {
			spec: `{image: a:1, ports: [{port: 80}], livenessProbe: {exec: {command: [x]}}}`,
			want: fixed + deadline600 + small + clusterIP + `
ports: [{port: 80, targetPort: 80, protocol: TCP}]
readinessProbe: {tcpSocket: {port: 80}}
livenessProbe: {exec: {command: [x]}}`,
		},
		"an explicit startup probe and an explicit deadline stay": {
			spec: `{image: a:1, ports: [{port: 80}], startupProbe: {exec: {command: [x]}}, progressDeadlineSeconds: 4}`,
			want: fixed + small + clusterIP + readyLive80 + `
ports: [{port: 80, targetPort: 80, protocol: TCP}]
startupProbe: {exec: {command: [x]}}
progressDeadlineSeconds: 4`,
		},
		"the deadline follows a startup probe, with Kubernetes' defaults": {
			spec: `{image: a:1, startupProbe: {exec: {command: [x]}, initialDelaySeconds: 7}}`,
			want: fixed + small + clusterIP + `
startupProbe: {exec: {command: [x]}, initialDelaySeconds: 7}
progressDeadlineSeconds: 637`,
		},
		"the deadline is at most a day": {
			spec: `{image: a:1, startupProbe: {exec: {command: [x]}, periodSeconds: 2147483647, failureThreshold: 2147483647}}`,
			want: fixed + small + clusterIP + `
startupProbe: {exec: {command: [x]}, periodSeconds: 2147483647, failureThreshold: 2147483647}
progressDeadlineSeconds: 86400`,
		},
		"a startup probe without an action keeps its timing": {
			spec: `{image: a:1, ports: [{port: 80}], startupProbe: {failureThreshold: 100}}`,
			want: fixed + small + clusterIP + readyLive80 + `
ports: [{port: 80, targetPort: 80, protocol: TCP}]
startupProbe: {tcpSocket: {port: 80}, failureThreshold: 100}
progressDeadlineSeconds: 1600`,
		},
		"an empty startup probe is not set": {
			spec: `{image: a:1, ports: [{port: 80}], startupProbe: {}}`,
			want: fixed + small + clusterIP + probes80 + `ports: [{port: 80, targetPort: 80, protocol: TCP}]`,
		},
		"a liveness probe with a timing has a derived action": {
			spec: `{image: a:1, ports: [{port: 80}], livenessProbe: {periodSeconds: 5}}`,
			want: fixed + small + clusterIP + startup80 + `
ports: [{port: 80, targetPort: 80, protocol: TCP}]
readinessProbe: {tcpSocket: {port: 80}}
livenessProbe: {tcpSocket: {port: 80}, periodSeconds: 5}`,
		},
		"beside an explicit liveness probe, an empty startup probe gets the action only": {
			spec: `{image: a:1, ports: [{port: 80}], livenessProbe: {exec: {command: [x]}}, startupProbe: {}}`,
			want: fixed + small + clusterIP + `
ports: [{port: 80, targetPort: 80, protocol: TCP}]
readinessProbe: {tcpSocket: {port: 80}}
livenessProbe: {exec: {command: [x]}}
startupProbe: {tcpSocket: {port: 80}}
progressDeadlineSeconds: 630`,
		},
		"a preset beside another resource": {
			spec: `{image: a:1, resourceType: medium, resources: {limits: {nvidia.com/gpu: 1}}}`,
			want: fixed + deadline600 + clusterIP + `
resourceType: medium
resources: {limits: {cpu: "2", memory: 4Gi, nvidia.com/gpu: 1}, requests: {cpu: "2", memory: 4Gi}}`,
		},
		"a preset of which a part is written": {
			spec: `{image: a:1, resourceType: small, resources: {limits: {cpu: 1000m}, requests: {memory: 2Gi}}}`,
			want: fixed + deadline600 + clusterIP + `
resourceType: small
resources: {limits: {cpu: 1000m, memory: 2Gi}, requests: {cpu: "1", memory: 2Gi}}`,
		},
		"no probes are wanted": {
			spec: `{image: a:1, defaultProbes: Disabled, ports: [{port: 80}]}`,
			want: `
name: web
image: a:1
replicas: 1
rollingUpdate: 25%
defaultProbes: Disabled
ports: [{port: 80, targetPort: 80, protocol: TCP}]` + small + clusterIP + deadline600,
		},
		"a pod template is not touched": {
			spec: `{image: a:1, podTemplate: {spec: {containers: [{name: web, ports: []}], nonsense: 1}}}`,
			want: fixed + deadline600 + small + clusterIP + `podTemplate: {spec: {containers: [{name: web, ports: []}], nonsense: 1}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, want := box(t, tc.spec), box(t, tc.want)
			check(t, marshal(t, got), nil)
			setDefaults(got, nil)
			if diff := diff(t, want, got); diff != "" {
				t.Errorf("defaults (-want +got):\n%s", diff)
			}
		})
	}
}

// An object that is created by generateName has no name when it is admitted.
func TestDefaultWithoutName(t *testing.T) {
	t.Parallel()
	got := box(t, `{image: a:1}`)
	got.Name, got.GenerateName = "", "web-"
	setDefaults(got, nil)
	if got.Spec.Name != "" {
		t.Errorf("name = %q, want none: it is not generated yet", got.Spec.Name)
	}
	if errs := modelbox.Validate(got); len(errs) > 0 {
		t.Errorf("refused: %v", errs)
	}
	// The controller sees the object with its name.
	got.Name = "web-x7k2p"
	setDefaults(got, nil)
	if got.Spec.Name != "web-x7k2p" {
		t.Errorf("name = %q, want the object's", got.Spec.Name)
	}
}

// The manifest that users of old have, as it is.
func TestDefaultOfTheGivenManifest(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/given/modelbox.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := &modelv1.ModelBox{}
	ruletest.Read(t, string(text), got)
	typed, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	check(t, typed, nil)
	setDefaults(got, nil)

	want := box(t, `
name: nginx
image: nginx:1.7.9
replicas: 4
rollingUpdate: 30%
defaultProbes: Enabled
ports: [{port: 80, targetPort: 80, nodePort: 30010, protocol: TCP}]`+small+nodePort+probes80)
	if diff := diff(t, want.Spec, got.Spec); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if errs := modelbox.Validate(got); len(errs) > 0 {
		t.Errorf("refused: %v", errs)
	}
	if warnings := modelbox.Warn(got); len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
}

// all encodes all fields that have defaults.
var all = withoutSizes.Codec(&modelv1.ModelBox{Spec: modelv1.ModelBoxSpec{ResourceType: "gpu"}}, nil)

// withoutSizes is the kind in a cluster without sizes.
var withoutSizes = modelbox.Kind()

func setDefaults(box, old *modelv1.ModelBox) { withoutSizes.SetDefaults(box, old) }

// check checks what holds for the defaults of any object, sent as data over old,
// which is nil on create.
func check(t testing.TB, data []byte, old *modelv1.ModelBox) {
	t.Helper()
	sent := decode(t, data)
	if old == nil {
		sent.ManagedFields = nil // As in the handler: the client that creates an object sets all of its fields.
	} else {
		sent.ManagedFields = existing(t, sent)
	}
	sent.Annotations = nil // A manifest that happens to have what is derived here would have set it.
	data = marshal(t, sent)
	stored := old.DeepCopy()
	kind := modelbox.KindWithSizes((&server{}).sizes())
	got := sent.DeepCopy()
	kind.SetDefaults(got, old)

	if diff := diff(t, stored, old); diff != "" {
		t.Errorf("the old object was changed (-before +after):\n%s", diff)
	}
	checkSettled(t, "again", got, func(box *modelv1.ModelBox) { kind.SetDefaults(box, old) })
	checkSettled(t, "once stored", got, func(box *modelv1.ModelBox) { kind.SetDefaults(box, got) })
	checkSettled(t, "by the controller", got, modelbox.DefaultStored)
	checkPatch(t, data, got)
	if old == nil {
		checkKept(t, "", tree(t, sent), tree(t, got))
	}
	checkValidate(t, got)
}

// existing are the managedFields of a box without fields that are not there, which the
// API server takes out as well.
func existing(t testing.TB, box *modelv1.ModelBox) []metav1.ManagedFieldsEntry {
	t.Helper()
	var out []metav1.ManagedFieldsEntry
	object := value.NewValueInterface(tree(t, box))
	for _, entry := range box.ManagedFields {
		set, kept := &fieldpath.Set{}, &fieldpath.Set{}
		if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue
		}
		set.Iterate(func(path fieldpath.Path) {
			if has(object, path) {
				kept.Insert(path.Copy())
			}
		})
		text, err := kept.ToJSON()
		must(err)
		entry.FieldsV1 = metav1.NewFieldsV1(string(text))
		out = append(out, entry)
	}
	return out
}

func has(v value.Value, path fieldpath.Path) bool {
	if len(path) == 0 {
		return true
	}
	switch element := path[0]; {
	case element.FieldName != nil && v.IsMap():
		member, ok := v.AsMap().Get(*element.FieldName)
		return ok && has(member, path[1:])
	case element.Key != nil && v.IsList():
		for i := range v.AsList().Length() {
			if item := v.AsList().At(i); item.IsMap() && keyed(item.AsMap(), *element.Key) && has(item, path[1:]) {
				return true
			}
		}
	}
	return false
}

func keyed(item value.Map, key value.FieldList) bool {
	for _, field := range key {
		have, ok := item.Get(field.Name)
		if !ok || !value.Equals(have, field.Value) {
			return false
		}
	}
	return true
}

func decode(t testing.TB, data []byte) *modelv1.ModelBox {
	t.Helper()
	out := &modelv1.ModelBox{}
	if err := unmarshal(data, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// checkSettled wants nothing more to be filled in.
func checkSettled(t testing.TB, when string, box *modelv1.ModelBox, fill func(*modelv1.ModelBox)) {
	t.Helper()
	next := box.DeepCopy()
	fill(next)
	if diff := diff(t, box, next); diff != "" {
		t.Errorf("defaulted %s (-before +after):\n%s", when, diff)
	}
}

// checkPatch wants the operations to make of what was sent what the defaults made of it.
func checkPatch(t testing.TB, data []byte, want *modelv1.ModelBox) {
	t.Helper()
	ops, err := kinds.Diff(data, all.Spec(decode(t, data)), all.Spec(want))
	if err != nil {
		return // Something null that the schema refuses.
	}
	decoded, err := jsonpatch.DecodePatch(marshal(t, ops))
	if err != nil {
		t.Fatal(err)
	}
	patched, err := decoded.Apply(data)
	if err != nil {
		t.Fatalf("applying %s to %s: %v", marshal(t, ops), data, err)
	}
	if diff := diff(t, want, decode(t, patched)); diff != "" {
		t.Errorf("patched by %s (-defaulted +patched):\n%s", marshal(t, ops), diff)
	}
}

// checkKept wants everything that was set to be there, as it was.
func checkKept(t testing.TB, path string, typed, got any) {
	t.Helper()
	switch typed := typed.(type) {
	case map[string]any:
		into, _ := got.(map[string]any)
		for key, value := range typed {
			checkKept(t, path+"/"+key, value, into[key])
		}
	case []any:
		into, _ := got.([]any)
		if len(into) != len(typed) {
			t.Errorf("%s has %d items, %d were set", path, len(into), len(typed))
			return
		}
		for i := range typed {
			checkKept(t, path+"/#", typed[i], into[i])
		}
	default:
		if typed != got && typed != "" { // An empty string means not set.
			t.Errorf("%s: %v was set, and is %v", path, typed, got)
		}
	}
}

// checkValidate checks that Validate is deterministic and does not change the object.
func checkValidate(t testing.TB, box *modelv1.ModelBox) {
	t.Helper()
	before := box.DeepCopy()
	first := ruletest.Lines(modelbox.Validate(box))
	modelbox.Warn(box)
	if diff := diff(t, before, box); diff != "" {
		t.Errorf("validation changed the object (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(first, ruletest.Lines(modelbox.Validate(box))); diff != "" {
		t.Errorf("two validations differ (-first +second):\n%s", diff)
	}
}
