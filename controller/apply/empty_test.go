// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestDropEmptyKeepsWhatHasAMeaning(t *testing.T) {
	var got, want corev1.PodTemplateSpec
	parse(t, &got, `
metadata: {labels: {a: b}}
spec:
  securityContext: {}
  affinity: {podAffinity: {}, podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {}}]}}
  volumes: [{name: a, emptyDir: {}}]
  topologySpreadConstraints: [{topologyKey: a, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]
  containers:
  - name: a
    securityContext: {capabilities: {}}
    lifecycle: {}
    env: [{name: A}]
    resources: {limits: {cpu: 0}}
  - name: b
    lifecycle: {preStop: {sleep: {seconds: 0}}}
    livenessProbe: {}
`)
	parse(t, &want, `
metadata: {labels: {a: b}}
spec:
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {}}]}}
  volumes: [{name: a, emptyDir: {}}]
  topologySpreadConstraints: [{topologyKey: a, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]
  containers:
  - name: a
    env: [{name: A}]
    resources: {limits: {cpu: 0}}
  - name: b
    lifecycle: {preStop: {sleep: {seconds: 0}}}
`)
	DropEmpty(&got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	parse(t, &got, `spec: {affinity: {podAffinity: {}}}`)
	DropEmpty(&got)
	if got.Spec.Affinity != nil {
		t.Errorf("affinity is %v", got.Spec.Affinity)
	}
}

func parse(t *testing.T, into *corev1.PodTemplateSpec, text string) {
	t.Helper()
	*into = corev1.PodTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
