// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// TargetPorts says whether each target port that is a name is one that a container
// of the pod declares for the same protocol, as the endpoints of a Service are
// looked up (FindPort in k8s.io/endpointslice). template may be nil.
func TargetPorts(path *field.Path, ports []modelv1.Port, template *corev1.PodTemplateSpec) field.ErrorList {
	var errs field.ErrorList
	ports = atMost(ports)
	for i := range ports {
		port := &ports[i]
		target := TargetPort(port)
		if target.Type == intstr.Int || !isPortName(target.StrVal) {
			continue
		}
		if !namesOwnPort(ports, port) && !namesTemplatePort(template, port) {
			errs = append(errs, field.Invalid(path.Index(i).Child("targetPort"), target.StrVal,
				fmt.Sprintf("no container has a %s port of this name: write a number, or declare the port in podTemplate",
					Protocol(port))))
		}
	}
	return errs
}

func namesOwnPort(ports []modelv1.Port, port *modelv1.Port) bool {
	for i := range ports {
		if ports[i].Name == port.TargetPort.StrVal && Protocol(&ports[i]) == Protocol(port) {
			_, ok := declares(ports, i)
			return ok
		}
	}
	return false
}

func namesTemplatePort(template *corev1.PodTemplateSpec, port *modelv1.Port) bool {
	if template == nil {
		return false
	}
	has := func(c *corev1.Container) bool {
		return contains(c.Ports, func(p *corev1.ContainerPort) bool {
			return p.Name == port.TargetPort.StrVal && (p.Protocol == Protocol(port) || p.Protocol == "" && Protocol(port) == corev1.ProtocolTCP)
		})
	}
	return contains(template.Spec.Containers, has) ||
		contains(template.Spec.InitContainers, func(c *corev1.Container) bool { return isSidecar(c) && has(c) })
}
