// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MaxReplicas is the maximum of spec.replicas, and MaxRollingUpdate that of
// spec.rollingUpdate as a number of pods. The Deployment controller adds the two in an
// int32 (NewRSNewReplicas in k8s.io/kubernetes/pkg/controller/deployment/util), and 100% is
// as many pods again: twice 1<<30 - 1 is less than 1<<31 - 1.
const (
	MaxReplicas      = int32(1<<30 - 1)
	MaxRollingUpdate = MaxReplicas
)

// IsUnset reports whether an optional number or string is not set. An empty string is not
// set.
func IsUnset(v *intstr.IntOrString) bool {
	return v == nil || v.Type == intstr.String && v.StrVal == ""
}

// IntOrPercent returns the value of spec.rollingUpdate in the form of maxSurge and
// maxUnavailable, where every string is a percentage: the string "5" becomes the number 5.
// A number above MaxRollingUpdate, which may have been stored before it was refused,
// becomes MaxRollingUpdate, which has the same effect. Any other value is returned as it is.
func IntOrPercent(v intstr.IntOrString) intstr.IntOrString {
	if v.Type == intstr.Int {
		return intstr.FromInt32(min(v.IntVal, MaxRollingUpdate))
	}
	if number, ok := positive(v.StrVal); ok {
		return intstr.FromInt32(number)
	}
	return v
}

// positive parses a positive number of at most 9 digits, without sign and leading zeros.
func positive(s string) (number int32, ok bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int32(n), err == nil && s[0] != '0' && len(s) <= 9
}

// ServiceName returns the name of the Service of an object.
func (c *Children) ServiceName(owner string) string {
	if c.Service == nil || c.Service.Name == "" {
		return owner
	}
	return c.Service.Name
}

// MatchLabels returns the labels of spec.selector as those of a label selector, nil if there are none.
func MatchLabels(selector map[string]LabelValue) map[string]string {
	if selector == nil {
		return nil
	}
	out := make(map[string]string, len(selector))
	for key, value := range selector {
		out[key] = string(value)
	}
	return out
}

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

// Scheduling has the fields of a pod that define which nodes it may run on, and how, and labels of the
// pods. Each of them may be set here or in podTemplate, but not in both.
type Scheduling struct {
	// nodeSelector are the labels that a node must have for the pods to be scheduled to it. At most
	// 64 labels.
	//
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are the taints of nodes that the pods tolerate. At most 64 items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// runtimeClassName is the name of the RuntimeClass that the pods are run with, such as
	// nvidia. At most 253 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RuntimeClassName string `json:"runtimeClassName,omitempty"`

	// priorityClassName is the name of the PriorityClass of the pods. At most 253 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// schedulerName is the name of the scheduler that assigns the pods to nodes. Kubernetes
	// defaults it to default-scheduler. At most 253 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName,omitempty"`

	// podLabels are labels of the pods, such as the queue of a scheduler:
	// kueue.x-k8s.io/queue-name. They cannot be labels that the operator sets or selects pods by.
	// At most 64 labels.
	//
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=64
	PodLabels map[string]string `json:"podLabels,omitempty"`
}
