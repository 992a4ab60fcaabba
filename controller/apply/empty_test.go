// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// An empty struct differs from an unset one only where it has an effect.
func TestEmptyStructs(t *testing.T) {
	for spec, differs := range map[string]bool{
		`securityContext: {}`:                                                                    false,
		`affinity: {podAffinity: {}}`:                                                            false,
		`containers: [{name: a, lifecycle: {}}]`:                                                 false,
		`containers: [{name: a, livenessProbe: {}}]`:                                             false,
		`containers: [{name: a, securityContext: {capabilities: {}}}]`:                           false,
		`volumes: [{name: a, hostPath: {path: /}}, {name: b, emptyDir: {}}]`:                     true,
		`securityContext: {runAsUser: 0}`:                                                        true,
		`topologySpreadConstraints: [{topologyKey: a, whenUnsatisfiable: b, labelSelector: {}}]`: true,
		`affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {}}]}}`: true,
	} {
		desired := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
		if err := yaml.UnmarshalStrict([]byte(spec), &desired.Spec.Template.Spec); err != nil {
			t.Fatal(err)
		}
		live := desired.DeepCopy()
		pod := &live.Spec.Template.Spec
		pod.SecurityContext, pod.Affinity = nil, nil
		for i := range pod.Containers {
			pod.Containers[i].Lifecycle, pod.Containers[i].LivenessProbe, pod.Containers[i].SecurityContext = nil, nil, nil
		}
		for i := range pod.Volumes {
			pod.Volumes[i].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		}
		for i := range pod.TopologySpreadConstraints {
			pod.TopologySpreadConstraints[i].LabelSelector = nil
		}
		if got := len(differing(t, desired, live)) > 0; got != differs {
			t.Errorf("%s differs: %t, want %t", spec, got, differs)
		}
	}
}
