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

// A derived default follows its source, unless a client set it.
func TestDefaultOnUpdate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// old is what was stored, after its defaults.
		old string
		// sent is what comes in: old, as it was stored, with these fields merged
		// over it, where null removes one.
		sent string
		// typed are the fields that make it stay, as managedFields have it.
		typed string
		// want is what follows, merged over what comes in.
		want string
	}{
		"resources follow the type": {
			old:   `{image: a:1}`,
			sent:  `{resourceType: large}`,
			typed: `{"f:resources":{"f:limits":{"f:cpu":{},"f:memory":{}},"f:requests":{"f:cpu":{},"f:memory":{}}}}`,
			want:  `{resources: {limits: {cpu: "4", memory: 8Gi}, requests: {cpu: "4", memory: 8Gi}}}`,
		},
		"resources follow a type that is taken back": {
			old:   `{image: a:1, resourceType: large}`,
			sent:  `{resourceType: small}`,
			typed: `{"f:resourceType":{},"f:resources":{"f:limits":{"f:cpu":{},"f:memory":{}},"f:requests":{"f:cpu":{},"f:memory":{}}}}`,
			want:  small,
		},
		"serviceType follows a nodePort that comes": {
			old:   `{image: a:1, ports: [{port: 80}]}`,
			sent:  `{ports: [{port: 80, targetPort: 80, protocol: TCP, nodePort: 30010}]}`,
			typed: `{"f:serviceType":{}}`,
			want:  `{serviceType: NodePort}`,
		},
		"serviceType follows a nodePort that goes": {
			old:   `{image: a:1, ports: [{port: 80, nodePort: 30010}]}`,
			sent:  `{ports: [{port: 80, targetPort: 80, protocol: TCP}]}`,
			typed: `{"f:serviceType":{}}`,
			want:  `{serviceType: ClusterIP}`,
		},
		"a probe follows its port": {
			old:   `{image: a:1, ports: [{port: 80}], livenessProbe: {exec: {command: [x]}}}`,
			sent:  `{ports: [{port: 8080, targetPort: 8080, protocol: TCP}]}`,
			typed: `{"f:readinessProbe":{"f:tcpSocket":{"f:port":{}}}}`,
			want:  `{readinessProbe: {tcpSocket: {port: 8080}}}`,
		},
		"a probe follows the target of its port": {
			old:   `{image: a:1, ports: [{port: 80}], readinessProbe: {exec: {command: [x]}}, startupProbe: {exec: {command: [x]}}}`,
			sent:  `{ports: [{port: 80, targetPort: 8080, protocol: TCP}]}`,
			typed: `{"f:livenessProbe":{"f:tcpSocket":{"f:port":{}}}}`,
			want:  `{livenessProbe: {tcpSocket: {port: 8080}}}`,
		},
		"a probe goes with its port": {
			old:   `{image: a:1, ports: [{port: 80}], livenessProbe: {exec: {command: [x]}}}`,
			sent:  `{ports: null}`,
			typed: `{"f:readinessProbe":{"f:tcpSocket":{"f:port":{}}}}`,
			want:  `{readinessProbe: null}`,
		},
		"a probe goes when no probes are wanted": {
			old:   `{image: a:1, ports: [{port: 80}], readinessProbe: {exec: {command: [x]}}, startupProbe: {exec: {command: [x]}}}`,
			sent:  `{defaultProbes: Disabled}`,
			typed: `{"f:livenessProbe":{"f:tcpSocket":{"f:port":{}}}}`,
			want:  `{livenessProbe: null}`,
		},
		"a name goes when its port is left alone": {
			old:   `{image: a:1, ports: [{port: 80}, {port: 81}]}`,
			sent:  `{ports: [{port: 80, name: tcp-80, targetPort: 80, protocol: TCP}]}`,
			typed: `{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}}`,
			want:  `{ports: [{port: 80, targetPort: 80, protocol: TCP}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := stored(t, tc.old)
			sent := merged(t, old, tc.sent)
			follows := merged(t, sent, tc.want)

			for who, entries := range map[string][]metav1.ManagedFieldsEntry{
				"no managedFields":             nil,
				"no manager owns it":           owned(unrelatedFields),
				"a manager owns an empty spec": owned(`{}`),
			} {
				sent.ManagedFields = entries
				check(t, marshal(t, sent), old)
				if diff := diff(t, follows.Spec, defaulted(sent, old).Spec); diff != "" {
					t.Errorf("%s (-want +got):\n%s", who, diff)
				}
			}
			for who, entries := range map[string][]metav1.ManagedFieldsEntry{
				"a manager owns it":       owned(tc.typed),
				"one of several managers": append(owned(unrelatedFields), owned(tc.typed)...),
				"an entry without fields": append(owned(tc.typed), metav1.ManagedFieldsEntry{}),
			} {
				sent.ManagedFields = entries
				check(t, marshal(t, sent), old)
				if diff := diff(t, sent.Spec, defaulted(sent, old).Spec); diff != "" {
					t.Errorf("%s (-sent +got):\n%s", who, diff)
				}
			}
		})
	}
}

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

// What is not derived, or not derived any more, does not follow.
func TestDefaultStays(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ old, sent, want string }{
		"resources under custom": {
			old:  `{image: a:1}`,
			sent: `{resourceType: custom}`,
			want: `{}`,
		},
		"custom resources under a preset": {
			old:  `{image: a:1, resources: {limits: {cpu: "3"}}}`,
			sent: `{resourceType: small}`,
			want: `{}`,
		},
		"resources that equal another preset": {
			old:  `{image: a:1, resourceType: medium}`,
			sent: `{resourceType: large, resources: {limits: {cpu: "1", memory: 2Gi}, requests: {cpu: "1", memory: 2Gi}}}`,
			want: `{}`,
		},
		"resources that are new, though they equal the old preset": {
			old:  `{image: a:1, resourceType: custom, resources: {limits: {cpu: "3"}}}`,
			sent: `{resourceType: large, resources: {limits: {cpu: "1", memory: 2Gi}, requests: {cpu: "1", memory: 2Gi}}}`,
			want: `{}`,
		},
		"a serviceType that is not the derived one": {
			old:  `{image: a:1, serviceType: LoadBalancer, ports: [{port: 80}]}`,
			sent: `{ports: [{port: 80, targetPort: 80, protocol: TCP, nodePort: 30010}]}`,
			want: `{}`,
		},
		"a probe with a host, while another one has a timing": {
			old: `{image: a:1, ports: [{port: 80}],
				readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 5}, livenessProbe: {tcpSocket: {port: 80, host: h}}}`,
			sent: `{ports: [{port: 81, targetPort: 81, protocol: TCP}]}`,
			want: `{readinessProbe: {tcpSocket: {port: 81}}}`,
		},
		"a probe that was written in place of the derived one": {
			old:  `{image: a:1, ports: [{port: 80}], livenessProbe: {exec: {command: [x]}}}`,
			sent: `{readinessProbe: {httpGet: {port: 80}, tcpSocket: null}, ports: [{port: 81, targetPort: 81, protocol: TCP}]}`,
			want: `{}`,
		},
		"a name that is not the derived one": {
			old:  `{image: a:1, ports: [{port: 80, name: http}, {port: 81}]}`,
			sent: `{ports: [{port: 80, name: http, targetPort: 80, protocol: TCP}]}`,
			want: `{}`,
		},
		"a name that a lone port was given": {
			old:  `{image: a:1, ports: [{port: 80, name: tcp-80}]}`,
			sent: `{ports: [{port: 80, name: tcp-80, targetPort: 80, protocol: TCP, appProtocol: x}]}`,
			want: `{}`,
		},
		"a name and a target of a number that is changed in place": {
			old:  `{image: a:1, ports: [{port: 90}, {port: 80}], defaultProbes: Disabled}`,
			sent: `{ports: [{port: 90, name: tcp-90, targetPort: 90, protocol: TCP}, {port: 8080, name: tcp-80, targetPort: 80, protocol: TCP}]}`,
			want: `{}`,
		},
		"a target that another port had": {
			old:  `{image: a:1, ports: [{port: 80}], defaultProbes: Disabled}`,
			sent: `{ports: [{port: 8080, name: new, targetPort: 80, protocol: TCP}, {port: 80, name: tcp-80, targetPort: 80, protocol: TCP}]}`,
			want: `{}`,
		},
		"a target that was not the derived one": {
			old:  `{image: a:1, ports: [{port: 80, targetPort: 8080}], defaultProbes: Disabled}`,
			sent: `{ports: [{port: 8080, targetPort: 80, protocol: TCP}]}`,
			want: `{}`,
		},
		"a name that is derived anew for each when the list is sent anew": {
			old:  `{image: a:1, ports: [{port: 80}, {port: 81}]}`,
			sent: `{ports: [{port: 81}, {port: 80}]}`,
			want: `
ports: [{port: 81, name: tcp-81, targetPort: 81, protocol: TCP}, {port: 80, name: tcp-80, targetPort: 80, protocol: TCP}]
readinessProbe: {tcpSocket: {port: 81}}
livenessProbe: {tcpSocket: {port: 81}}
startupProbe: {tcpSocket: {port: 81}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := stored(t, tc.old)
			sent := merged(t, old, tc.sent)
			check(t, marshal(t, sent), old)
			if diff := diff(t, merged(t, sent, tc.want).Spec, defaulted(sent, old).Spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// resourceType is derived from resources, and follows them if managedFields show that no client
// set it. Otherwise validation refuses what does not match.
func TestResourceTypeFollows(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ old, sent, set, typed, want string }{
		"resources come": {
			old:   `{image: a:1}`,
			sent:  `{resources: {limits: {cpu: "3"}, requests: null}}`,
			set:   `{"f:resources":{"f:limits":{"f:cpu":{}}}}`,
			typed: `{"f:resourceType":{},"f:resources":{"f:limits":{"f:cpu":{},"f:memory":{}}}}`,
			want:  `{resourceType: custom, resources: {limits: {memory: null}}}`,
		},
		"resources go": {
			old:   `{image: a:1, resources: {limits: {cpu: "3"}}}`,
			sent:  `{resources: null}`,
			set:   `{"f:image":{}}`,
			typed: `{"f:resourceType":{}}`,
			want:  `{resourceType: small, resources: {limits: {cpu: "1", memory: 2Gi}, requests: {cpu: "1", memory: 2Gi}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := stored(t, tc.old)
			sent := merged(t, old, tc.sent)

			sent.ManagedFields = owned(tc.set)
			check(t, marshal(t, sent), old)
			if diff := diff(t, merged(t, sent, tc.want).Spec, defaulted(sent, old).Spec); diff != "" {
				t.Errorf("no manager owns it (-want +got):\n%s", diff)
			}
			for who, entries := range map[string][]metav1.ManagedFieldsEntry{
				"a manager owns it": owned(tc.typed),
				"no managedFields":  nil,
			} {
				sent.ManagedFields = entries
				got := defaulted(sent, old)
				if diff := diff(t, sent.Spec, got.Spec); diff != "" {
					t.Errorf("%s (-sent +got):\n%s", who, diff)
				}
				if len(modelbox.Validate(got)) == 0 {
					t.Errorf("%s: %s is accepted", who, marshal(t, got.Spec))
				}
			}
		})
	}
}
