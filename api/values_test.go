// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

func TestContainerPorts(t *testing.T) {
	t.Parallel()
	var ports []modelv1.Port
	ruletest.Read(t, `
- {port: 80, name: http}
- {port: 81, name: again, targetPort: 80}
- {port: 80, name: quic, protocol: UDP}
- {port: 443, name: tls, targetPort: sidecar}
- {port: 9, targetPort: 90}`, &ports)
	want := []corev1.ContainerPort{
		{Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP},
		{Name: "quic", ContainerPort: 80, Protocol: corev1.ProtocolUDP},
		{ContainerPort: 90, Protocol: corev1.ProtocolTCP},
	}
	if diff := cmp.Diff(want, modelv1.ContainerPorts(ports)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDefaultServiceType(t *testing.T) {
	t.Parallel()
	for ports, want := range map[string]corev1.ServiceType{
		`[]`:                               corev1.ServiceTypeClusterIP,
		`[{port: 1}]`:                      corev1.ServiceTypeClusterIP,
		`[{port: 1}, {nodePort: 30000}]`:   corev1.ServiceTypeNodePort,
		`[{port: 1, nodePort: -1}]`:        corev1.ServiceTypeNodePort,
		`[{port: 1, protocol: nonsense} ]`: corev1.ServiceTypeClusterIP,
	} {
		var list []modelv1.Port
		ruletest.Read(t, ports, &list)
		if got := modelv1.DefaultServiceType(list); got != want {
			t.Errorf("%s: %s, want %s", ports, got, want)
		}
	}
}

func TestIntOrPercent(t *testing.T) {
	t.Parallel()
	for in, want := range map[intstr.IntOrString]intstr.IntOrString{
		intstr.FromInt32(5):           intstr.FromInt32(5),
		intstr.FromInt32(0):           intstr.FromInt32(0),
		intstr.FromInt32(1<<30 - 1):   intstr.FromInt32(1<<30 - 1),
		intstr.FromInt32(1<<31 - 1):   intstr.FromInt32(1<<30 - 1),
		intstr.FromString("99999999"): intstr.FromInt32(99999999),
		intstr.FromString("5"):        intstr.FromInt32(5),
		intstr.FromString("5%"):       intstr.FromString("5%"),
		intstr.FromString("05"):       intstr.FromString("05"),
		intstr.FromString("nonsense"): intstr.FromString("nonsense"),
		intstr.FromString(""):         intstr.FromString(""),
	} {
		if got := modelv1.IntOrPercent(in); got != want {
			t.Errorf("%#v becomes %#v, want %#v", in, got, want)
		}
	}
}
