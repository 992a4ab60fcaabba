// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// Protocol is the port's protocol, TCP if it says nothing.
func Protocol(port *modelv1.Port) corev1.Protocol {
	if port.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return port.Protocol
}

// TargetPort is the port in the container: the port's own number if it says
// nothing.
func TargetPort(port *modelv1.Port) intstr.IntOrString {
	if Unset(port.TargetPort) {
		return intstr.FromInt32(port.Port)
	}
	return *port.TargetPort
}

// AppProtocol is the port's hint of a protocol, nil if it says nothing.
func AppProtocol(port *modelv1.Port) *string {
	if port.AppProtocol != nil && *port.AppProtocol == "" {
		return nil
	}
	return port.AppProtocol
}

// ServiceType is the type that a Service needs for the ports: NodePort if one of
// them asks for a port on the nodes, and ClusterIP otherwise.
func ServiceType(ports []modelv1.Port) corev1.ServiceType {
	for i := range ports {
		if ports[i].NodePort != 0 {
			return corev1.ServiceTypeNodePort
		}
	}
	return corev1.ServiceTypeClusterIP
}

// ContainerPorts are the ports that the main container declares: the numeric
// target ports, each under the name of the first port that leads to it. Two ports
// of a Service may lead to one of the container, while a container must not
// declare one twice (server-side apply refuses a repeated key). A target port that
// is a name belongs to the container that declares it.
func ContainerPorts(ports []modelv1.Port) []corev1.ContainerPort {
	ports = atMost(ports)
	out := make([]corev1.ContainerPort, 0, len(ports))
	for i := range ports {
		if target, ok := declares(ports, i); ok {
			out = append(out, corev1.ContainerPort{Name: ports[i].Name, ContainerPort: target, Protocol: Protocol(&ports[i])})
		}
	}
	return out
}

// declares is the number that the main container declares for ports[i], if it
// does.
func declares(ports []modelv1.Port, i int) (int32, bool) {
	target := TargetPort(&ports[i])
	if target.Type != intstr.Int {
		return 0, false
	}
	for j := range ports[:i] {
		if TargetPort(&ports[j]) == target && Protocol(&ports[j]) == Protocol(&ports[i]) {
			return 0, false
		}
	}
	return target.IntVal, true
}

func samePort(a, b *modelv1.Port) bool { return a.Port == b.Port && Protocol(a) == Protocol(b) }

// atMost keeps what compares each port with each from a list that is far too long,
// and refused for that.
func atMost(ports []modelv1.Port) []modelv1.Port { return ports[:min(len(ports), MaxPorts)] }
