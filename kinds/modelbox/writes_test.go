// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

// A step is one write by kubectl.
type step struct {
	apply, applyServerSide, edit string
	// refused are the errors, one a line.
	refused string
	// want is a JSON merge patch that the stored object already matches.
	want string
}

// Sequences of writes, with the API server's own field management.
func TestSequencesOfWrites(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]step{
		"a size changes, and its resources with it": {
			{applyServerSide: `{image: a:1, resourceType: small}`, want: small},
			{applyServerSide: `{image: a:1, resourceType: large}`, want: `{resources: {limits: {cpu: "4", memory: 8Gi}}}`},
			{edit: `{resourceType: small}`, want: small},
		},
		"own resources take the place of a preset's": {
			{apply: `{image: a:1}`, want: small},
			{
				apply: `{image: a:1, resources: {limits: {cpu: 500m, memory: 2Gi}}}`,
				want:  `{resourceType: custom, resources: {limits: {cpu: 500m, memory: 2Gi}, requests: null}}`,
			},
			{apply: `{image: a:1}`, want: small},
		},
		"a merge patch of some resources leaves nothing of the preset": {
			{apply: `{image: a:1}`, want: small},
			{
				edit: `{resources: {limits: {cpu: 500m, memory: 1Gi}}}`,
				want: `{resourceType: custom, resources: {limits: {cpu: 500m, memory: 1Gi}, requests: null}}`,
			},
			{edit: `{resources: {limits: {cpu: 1}}}`, want: `{resourceType: custom, resources: {limits: {cpu: 1, memory: 1Gi}, requests: null}}`},
			{edit: `{resources: null}`, want: small},
			{
				edit: `{resources: {limits: {nvidia.com/gpu: 1}}}`,
				want: `{resourceType: custom, resources: {limits: {cpu: null, memory: null}, requests: null}}`,
			},
		},
		"empty resources are resources": {
			{apply: `{image: a:1}`, want: small},
			{apply: `{image: a:1, resourceType: custom, resources: {}}`, want: `{resourceType: custom, resources: {limits: null, requests: null}}`},
			{apply: `{image: a:1}`, want: small},
			{
				applyServerSide: `{image: a:1, resourceType: custom, resources: {}}`,
				want:            `{resourceType: custom, resources: {limits: null, requests: null}}`,
			},
		},
		"a preset that becomes custom keeps its values until they are set": {
			{apply: `{image: a:1}`, want: small},
			{edit: `{resourceType: custom}`, want: `{resources: {limits: {cpu: "1", memory: 2Gi}, requests: {cpu: "1", memory: 2Gi}}}`},
			{edit: `{image: a:2}`, want: `{resourceType: custom, resources: {limits: {cpu: "1", memory: 2Gi}, requests: {cpu: "1", memory: 2Gi}}}`},
			{edit: `{resourceType: large}`, want: `{resources: {limits: {cpu: "4", memory: 8Gi}, requests: {cpu: "4", memory: 8Gi}}}`},
		},
		"an empty probe follows the port": {
			{apply: `{image: a:1, ports: [{port: 80}], readinessProbe: {}}`, want: probes80},
			{
				apply: `{image: a:1, ports: [{port: 81}], readinessProbe: {}}`,
				want:  `{readinessProbe: {tcpSocket: {port: 81}}, livenessProbe: {tcpSocket: {port: 81}}}`,
			},
		},
		"a manager of an empty spec owns nothing": {
			{apply: `{image: a:1, ports: [{port: 80}]}`, want: small + probes80},
			{applyServerSide: `{}`, want: small + probes80},
			{edit: `{resourceType: large}`, want: `{resources: {limits: {cpu: "4", memory: 8Gi}, requests: {cpu: "4", memory: 8Gi}}}`},
		},
		"a manifest says nothing of what another client changed since": {
			{apply: `{image: a:1, resources: {limits: {cpu: 3}}}`, want: `{resourceType: custom}`},
			{edit: `{resources: null}`, want: small},
			{edit: `{resourceType: large}`, want: `{resources: {limits: {cpu: "4", memory: 8Gi}, requests: {cpu: "4", memory: 8Gi}}}`},
		},
		"a preset that a client set stays": {
			{apply: `{image: a:1, resourceType: small}`, want: small},
			{
				apply: `{image: a:1, resourceType: small, resources: {limits: {cpu: 3}}}`,
				refused: `spec.resources: Invalid value: {"limits":{"cpu":"3"}}: ` +
					`resourceType small is 1 CPU and 2Gi; set resourceType: custom to use other CPU and memory, or remove both from limits and requests`,
				want: small,
			},
		},
		"a hand-written probe survives other ports, a derived one follows": {
			{
				apply: `{image: a:1, ports: [{port: 80}], readinessProbe: {tcpSocket: {port: 80}}}`,
				want:  probes80,
			},
			{
				apply: `{image: a:1, ports: [{port: 81}], readinessProbe: {tcpSocket: {port: 80}}}`,
				want:  `{readinessProbe: {tcpSocket: {port: 80}}, livenessProbe: {tcpSocket: {port: 81}}}`,
			},
			{apply: `{image: a:1, ports: [{port: 82}]}`, want: `{readinessProbe: {tcpSocket: {port: 82}}, livenessProbe: {tcpSocket: {port: 82}}}`},
			{apply: `{image: a:1}`, want: `{readinessProbe: null, livenessProbe: null, ports: null}`},
		},
		"another action takes the place of the derived one": {
			{applyServerSide: `{image: a:1, ports: [{port: 80}]}`, want: probes80},
			{
				applyServerSide: `{image: a:1, ports: [{port: 80}], readinessProbe: {httpGet: {port: 80}}}`,
				want:            `{readinessProbe: {tcpSocket: null, httpGet: {port: 80}}, livenessProbe: {tcpSocket: {port: 80}}}`,
			},
			{applyServerSide: `{image: a:1, ports: [{port: 80}]}`, want: `{readinessProbe: {tcpSocket: {port: 80}, httpGet: null}}`},
		},
		"a derived action follows beside a timing that a client set": {
			{apply: `{image: a:1, ports: [{port: 80}]}`, want: probes80},
			{edit: `{readinessProbe: {periodSeconds: 5}}`, want: `{readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 5}}`},
			{edit: `{ports: [{port: 81}]}`, want: `{readinessProbe: {tcpSocket: {port: 81}, periodSeconds: 5}}`},
		},
		"a default that is written down later counts as set from then on": {
			{apply: `{image: a:1, ports: [{port: 80}]}`, want: clusterIP},
			{apply: `{image: a:1, ports: [{port: 80}], serviceType: ClusterIP}`, want: clusterIP},
			{
				apply: `{image: a:1, ports: [{port: 80, nodePort: 30010}], serviceType: ClusterIP}`,
				refused: `spec.ports[0].nodePort: Forbidden: nodePort may not be used if serviceType is ClusterIP; ` +
					`remove the nodePort or change serviceType`,
				want: clusterIP,
			},
			{apply: `{image: a:1, ports: [{port: 80, nodePort: 30010}]}`, want: nodePort},
		},
		"a name that was derived goes with the other port, one that a client set stays": {
			{apply: `{image: a:1, ports: [{port: 80}, {port: 81}]}`, want: `{}`},
			{edit: `{ports: [{port: 80, name: tcp-80, targetPort: 80}]}`, want: `{ports: [{port: 80, targetPort: 80, protocol: TCP}]}`},
			{apply: `{image: a:1, ports: [{port: 80, name: tcp-80}, {port: 81}]}`, want: `{}`},
			{apply: `{image: a:1, ports: [{port: 80, name: tcp-80}]}`, want: `{ports: [{port: 80, name: tcp-80, targetPort: 80, protocol: TCP}]}`},
		},
		// As with a Service: who edits the number sees the target beside it, and a
		// manifest that says the same looks no different.
		"a number that is changed in an editor leaves its target": {
			{apply: `{image: a:1, ports: [{port: 80}]}`, want: `{}`},
			{
				edit: `{ports: [{port: 8080, targetPort: 80, protocol: TCP}]}`,
				want: `{ports: [{port: 8080, targetPort: 80, protocol: TCP}], readinessProbe: {tcpSocket: {port: 80}}}`,
			},
		},
		"two field managers apply different fields": {
			{applyServerSide: `{image: a:1, ports: [{port: 80}]}`, want: clusterIP},
			{edit: `{replicas: 7, serviceType: LoadBalancer}`, want: `{serviceType: LoadBalancer}`},
			{applyServerSide: `{image: a:2, ports: [{port: 80, nodePort: 30010}]}`, want: `{replicas: 7, serviceType: LoadBalancer}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{t: t}
			for i, step := range steps {
				if diff := cmp.Diff(step.refused, ruletest.Lines(s.take(step))); diff != "" {
					t.Fatalf("step %d: refused (-want +got):\n%s", i, diff)
				}
				if diff := diff(t, merged(t, s.box(), step.want), s.box()); diff != "" {
					t.Fatalf("step %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// Applying the same manifest again writes nothing, and changes no owner.
func TestApplyAgain(t *testing.T) {
	t.Parallel()
	for name, apply := range applies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range *seeds {
				s, spec := created(t, newRandom(seed), apply)
				first := s.state()
				for range 3 {
					apply(s, spec)
				}
				if diff := diff(t, first, s.state()); diff != "" {
					t.Fatalf("seed %d: applying %s again (-first +then):\n%s", seed, marshal(t, spec), diff)
				}
			}
		})
	}
}

// created draws specs until one is accepted, so that each seed has an object. About two in five
// are refused.
func created(t *testing.T, r random, apply func(*server, map[string]any) field.ErrorList) (*server, map[string]any) {
	t.Helper()
	const most = 20
	for range most {
		s, spec := &server{t: t}, r.spec()
		if len(apply(s, spec)) == 0 {
			return s, spec
		}
	}
	t.Fatalf("%d specs were refused: the generator must draw more valid ones", most)
	return nil, nil
}

func (s *server) take(step step) field.ErrorList {
	s.t.Helper()
	spec := map[string]any{}
	ruletest.Read(s.t, step.apply+step.applyServerSide+step.edit, &spec)
	switch {
	case step.apply != "":
		return s.clientSideApply(spec)
	case step.applyServerSide != "":
		return s.serverSideApply(spec)
	}
	return s.mergePatch(string(marshal(s.t, map[string]any{"spec": spec})), "kubectl-edit")
}
