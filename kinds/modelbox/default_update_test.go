// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox_test

import (
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
)

// owned returns managedFields of a client that owns the given fields of spec.
func owned(fields string) []metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{Manager: "person", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1"}
	entry.FieldsV1 = &metav1.FieldsV1{}
	entry.FieldsV1.SetRawString(`{"f:spec":` + fields + `}`)
	return []metav1.ManagedFieldsEntry{entry}
}

// unrelatedFields have no derived defaults.
const unrelatedFields = `{"f:image":{},"f:podTemplate":{".":{}},` +
	`"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:protocol":{}}}}`

// before returns an object as 0.1.0 stored it: without the defaults that are newer.
func before(t *testing.T, spec string) *modelv1.ModelBox {
	t.Helper()
	out := stored(t, spec)
	written := box(t, spec).Spec
	out.Spec.StartupProbe, out.Spec.ProgressDeadlineSeconds = written.StartupProbe, written.ProgressDeadlineSeconds
	return out
}

// Defaults that are newer than an object come with a change of its pod template, and not
// before: its pods would restart.
func TestNewerDefaults(t *testing.T) {
	t.Parallel()
	const (
		deadline = `{progressDeadlineSeconds: 600}`
		both     = `{startupProbe: {tcpSocket: {port: 80}, periodSeconds: 2, failureThreshold: 900}, progressDeadlineSeconds: 2400}`
	)
	const withTemplate = `{image: a:1, ports: [{port: 80}], podTemplate: {spec: {nodeSelector: {a: b}, tolerations: [{key: a}]}}}`
	for name, tc := range map[string]struct{ old, sent, want string }{
		"replicas":               {`{image: a:1, ports: [{port: 80}]}`, `{replicas: 7}`, `{}`},
		"paused":                 {`{image: a:1, ports: [{port: 80}]}`, `{paused: true}`, `{}`},
		"rollingUpdate":          {`{image: a:1, ports: [{port: 80}]}`, `{rollingUpdate: 1}`, `{}`},
		"strategy":               {`{image: a:1, ports: [{port: 80}]}`, `{strategy: {type: Recreate}}`, `{}`},
		"a deadline":             {`{image: a:1, ports: [{port: 80}]}`, `{progressDeadlineSeconds: 90}`, `{}`},
		"a deadline, taken back": {`{image: a:1, ports: [{port: 80}], progressDeadlineSeconds: 90}`, `{progressDeadlineSeconds: null}`, `{progressDeadlineSeconds: 600}`},
		"scaled with a deadline": {`{image: a:1, ports: [{port: 80}], progressDeadlineSeconds: 90}`, `{replicas: 7}`, `{}`},
		"a nodePort": {
			`{image: a:1, ports: [{port: 80}]}`,
			`{ports: [{port: 80, targetPort: 80, protocol: TCP, nodePort: 30010}]}`,
			`{serviceType: NodePort}`,
		},
		"another port of the Service": {`{image: a:1, ports: [{port: 80}]}`, `{ports: [{port: 8080, targetPort: 80, protocol: TCP}]}`, `{}`},
		"serviceType":                 {`{image: a:1, ports: [{port: 80}]}`, `{serviceType: LoadBalancer}`, `{}`},
		"all defaults are removed": {
			`{image: a:1, ports: [{port: 80}]}`,
			`{replicas: 3, resources: null, resourceType: small, readinessProbe: null, livenessProbe: null, defaultProbes: null}`,
			small + readyLive80 + `
defaultProbes: Enabled`,
		},
		"a preset in other words": {
			`{image: a:1, ports: [{port: 80}]}`,
			`{resources: {limits: {cpu: 1000m, memory: 2048Mi}, requests: {cpu: "1", memory: 2Gi}}}`,
			`{}`,
		},
		"a template in other words": {
			withTemplate,
			`{replicas: 2, podTemplate: {metadata: {}, spec: {tolerations: [{key: a}], nodeSelector: {a: b}, volumes: [], containers: [{name: web}]}}}`,
			`{}`,
		},

		"image":       {`{image: a:1, ports: [{port: 80}]}`, `{image: a:2}`, both},
		"name":        {`{image: a:1, ports: [{port: 80}]}`, `{name: main}`, both},
		"envs":        {`{image: a:1, ports: [{port: 80}]}`, `{envs: [{name: A}]}`, both},
		"command":     {`{image: a:1, ports: [{port: 80}]}`, `{command: [a]}`, both},
		"pull policy": {`{image: a:1, ports: [{port: 80}]}`, `{imagePullPolicy: Always}`, both},
		"a size": {
			`{image: a:1, ports: [{port: 80}]}`, `{resourceType: medium}`,
			`{resources: {limits: {cpu: "2", memory: 4Gi}, requests: {cpu: "2", memory: 4Gi}},
			startupProbe: {tcpSocket: {port: 80}, periodSeconds: 2, failureThreshold: 900}, progressDeadlineSeconds: 2400}`,
		},
		"a probe":      {`{image: a:1, ports: [{port: 80}]}`, `{readinessProbe: {periodSeconds: 5}}`, both},
		"a template":   {withTemplate, `{podTemplate: {spec: {nodeSelector: {a: c}}}}`, both},
		"no probes":    {`{image: a:1}`, `{image: a:2}`, deadline},
		"other probes": {`{image: a:1, livenessProbe: {exec: {command: [x]}}}`, `{image: a:2}`, deadline},
		"a startup probe": {
			`{image: a:1, ports: [{port: 80}]}`, `{startupProbe: {exec: {command: [x]}, failureThreshold: 6}}`,
			`{progressDeadlineSeconds: 660}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := before(t, tc.old)
			sent := merged(t, old, tc.sent)
			for who, entries := range map[string][]metav1.ManagedFieldsEntry{"no managedFields": nil, "other fields": owned(unrelatedFields)} {
				sent.ManagedFields = entries
				check(t, marshal(t, sent), old)
				got := defaulted(sent, old)
				if diff := diff(t, merged(t, sent, tc.want).Spec, got.Spec); diff != "" {
					t.Errorf("%s (-want +got):\n%s", who, diff)
				}
			}
		})
	}
}

// The controller adds newer defaults only to an object that admission has never seen, and so
// does admission with the first update.
func TestNewerDefaultsOfAnUnseenObject(t *testing.T) {
	t.Parallel()
	unseen := box(t, `{image: a:1, ports: [{port: 80}]}`)
	inMemory := unseen.DeepCopy()
	modelbox.DefaultStored(inMemory)
	if diff := diff(t, stored(t, `{image: a:1, ports: [{port: 80}]}`), inMemory); diff != "" {
		t.Errorf("an object that admission has never seen (-of a new object +got):\n%s", diff)
	}
	scaled := merged(t, unseen, `{replicas: 2}`)
	scaled.ManagedFields = owned(unrelatedFields)
	inMemory.Spec.Replicas = new(int32(2))
	if diff := diff(t, inMemory.Spec, defaulted(scaled, unseen).Spec); diff != "" {
		t.Errorf("scaled (-by the controller +by admission):\n%s", diff)
	}
	seen := before(t, `{image: a:1, ports: [{port: 80}]}`)
	inMemory = seen.DeepCopy()
	modelbox.DefaultStored(inMemory)
	if diff := diff(t, seen, inMemory); diff != "" {
		t.Errorf("an object of 0.1.0 (-stored +in memory):\n%s", diff)
	}
}

// The ports of an adopted object are not in its pod template, but its default probes are derived from
// them: admission stores the probes, and the controller adds none.
func TestPortsOfAnAdoptedObject(t *testing.T) {
	t.Parallel()
	was := stored(t, `{image: a:1, selector: {app: a}}`)
	next := defaulted(merged(t, was, `{ports: [{port: 80}]}`), was)
	inMemory := next.DeepCopy()
	modelbox.DefaultStored(inMemory)
	if diff := diff(t, next, inMemory); diff != "" || next.Spec.ReadinessProbe == nil {
		t.Errorf("readiness probe %v (-stored +by the controller):\n%s", next.Spec.ReadinessProbe, diff)
	}
}

// stored is an object as it lies in the cluster: with its defaults.
func stored(t *testing.T, spec string) *modelv1.ModelBox {
	return defaulted(box(t, spec), nil)
}

func defaulted(box, old *modelv1.ModelBox) *modelv1.ModelBox {
	out := box.DeepCopy()
	setDefaults(out, old)
	return out
}

// merged is a box with a JSON merge patch (RFC 7386) of its spec.
func merged(t *testing.T, box *modelv1.ModelBox, spec string) *modelv1.ModelBox {
	t.Helper()
	change, err := yaml.YAMLToJSON([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	data, err := jsonpatch.MergePatch(marshal(t, box), []byte(`{"spec":`+string(change)+`}`))
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, data)
}
