// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestOverlayOfPorts(t *testing.T) {
	t.Parallel()
	port := func(name string, number, nodePort int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: number, Protocol: corev1.ProtocolTCP, NodePort: nodePort}
	}
	for _, test := range []struct {
		name                string
		desired, live, want []corev1.ServicePort
	}{
		{"renumbered, with the node port that was assigned", []corev1.ServicePort{port("http", 80, 0)},
			[]corev1.ServicePort{port("http", 8080, 31000)}, []corev1.ServicePort{port("http", 80, 31000)}},
		{"renumbered without a name", []corev1.ServicePort{port("", 80, 0)},
			[]corev1.ServicePort{port("", 8080, 31000)}, []corev1.ServicePort{port("", 80, 31000)}},
		{"two that were swapped", []corev1.ServicePort{port("a", 80, 0), port("b", 81, 0)},
			[]corev1.ServicePort{port("b", 80, 1), port("a", 81, 2)}, []corev1.ServicePort{port("a", 80, 1), port("b", 81, 2)}},
		{"its name is that of another port", []corev1.ServicePort{port("http", 80, 0)},
			[]corev1.ServicePort{port("http", 8080, 1), port("old", 80, 2)}, []corev1.ServicePort{port("http", 80, 2)}},
		{"a port of another manager, which keeps its index", []corev1.ServicePort{port("http", 80, 0)},
			[]corev1.ServicePort{port("theirs", 90, 1)}, []corev1.ServicePort{port("theirs", 90, 1), port("http", 80, 0)}},
		{"a port of another manager with our node port", []corev1.ServicePort{port("http", 80, 31000)},
			[]corev1.ServicePort{port("theirs", 90, 31000), port("http", 80, 2)}, []corev1.ServicePort{port("http", 80, 31000)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			desired, live := &corev1.Service{}, &corev1.Service{}
			desired.Spec.Ports, live.Spec.Ports = test.desired, test.live
			overlay(desired, live)
			if diff := cmp.Diff(test.want, live.Spec.Ports); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestOverlayPatchIsOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	live := deployment(func(d *appsv1.Deployment) {
		d.ResourceVersion = "7"
		d.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	})
	if patch, err := overlayPatch(deployment(), live); err != nil || patch != nil {
		t.Errorf("the patch of a child without a difference is %s, %v", patch, err)
	}
	live.Spec.Replicas, live.Labels["a"] = new(int32(9)), "c"
	patch, err := overlayPatch(deployment(), live)
	if err != nil {
		t.Fatal(err)
	}
	var have any
	if err := json.Unmarshal(patch, &have); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"metadata": map[string]any{"resourceVersion": "7", "labels": map[string]any{"a": "b"}},
		"spec":     map[string]any{"replicas": 2.0},
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Only the members of a union exclude each other; the other fields around them stay.
func TestOverlayOfAUnionKeepsTheFieldsBesideIt(t *testing.T) {
	t.Parallel()
	probe := func(change func(*corev1.Probe)) *appsv1.Deployment {
		return deployment(func(d *appsv1.Deployment) {
			main0(d).LivenessProbe = &corev1.Probe{}
			change(main0(d).LivenessProbe)
		})
	}
	desired := probe(func(p *corev1.Probe) { p.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(80)} })
	live := probe(func(p *corev1.Probe) { p.PeriodSeconds, p.Exec = 7, &corev1.ExecAction{Command: []string{"true"}} })
	overlay(desired, live)
	want := corev1.Probe{PeriodSeconds: 7, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}
	if diff := cmp.Diff(want, *main0(live).LivenessProbe); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
