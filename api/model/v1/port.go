// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MaxPorts is the maximum number of ports of an object.
const MaxPorts = 64

// ProtocolOrDefault returns the port's protocol, TCP if it is not set.
func (p *Port) ProtocolOrDefault() corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}

// TargetPortOrDefault returns the port of the container, which is the port's own number
// if targetPort is not set.
func (p *Port) TargetPortOrDefault() intstr.IntOrString {
	if IsUnset(p.TargetPort) {
		return intstr.FromInt32(p.Port)
	}
	return *p.TargetPort
}

// AppProtocolOrNil returns the port's appProtocol, nil if it is not set or empty.
func (p *Port) AppProtocolOrNil() *string {
	if p.AppProtocol != nil && *p.AppProtocol == "" {
		return nil
	}
	return p.AppProtocol
}

// IsSame reports whether two ports have the same number and protocol, which are the keys
// of the list of ports.
func (p *Port) IsSame(other *Port) bool {
	return p.Port == other.Port && p.ProtocolOrDefault() == other.ProtocolOrDefault()
}

// DefaultServiceType returns the default type of a Service with these ports: NodePort if
// one of them has a nodePort, and ClusterIP otherwise.
func DefaultServiceType(ports []Port) corev1.ServiceType {
	for i := range ports {
		if ports[i].NodePort != 0 {
			return corev1.ServiceTypeNodePort
		}
	}
	return corev1.ServiceTypeClusterIP
}

// ContainerPorts returns the ports of the main container: the numeric target ports, each
// under the name of the first port that refers to it. Two ports of a Service may have the
// same target port, but a container must not declare a port twice, because server-side
// apply refuses repeated keys. A named target port belongs to the container that declares
// it. Of a list of more than MaxPorts, which is invalid, the rest is ignored.
func ContainerPorts(ports []Port) []corev1.ContainerPort {
	ports = ports[:min(len(ports), MaxPorts)]
	out := make([]corev1.ContainerPort, 0, len(ports))
	for i := range ports {
		target := ports[i].TargetPortOrDefault()
		if target.Type == intstr.Int && !isTarget(ports[:i], target, ports[i].ProtocolOrDefault()) {
			out = append(out, corev1.ContainerPort{
				Name: ports[i].Name, ContainerPort: target.IntVal, Protocol: ports[i].ProtocolOrDefault(),
			})
		}
	}
	return out
}

func isTarget(ports []Port, target intstr.IntOrString, protocol corev1.Protocol) bool {
	for i := range ports {
		if ports[i].TargetPortOrDefault() == target && ports[i].ProtocolOrDefault() == protocol {
			return true
		}
	}
	return false
}
