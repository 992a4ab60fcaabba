// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// ValidateTargets refuses target ports with a name that no container of the pod declares
// for the same protocol, which is how the endpoints of a Service are looked up (FindPort in
// k8s.io/endpointslice). declared are the ports of the main container. template may be nil.
func ValidateTargets(path *field.Path, ports []modelv1.Port, declared []corev1.ContainerPort, template *corev1.PodTemplateSpec) field.ErrorList {
	var errs field.ErrorList
	ports = ports[:min(len(ports), modelv1.MaxPorts)]
	for i := range ports {
		port := &ports[i]
		target := port.TargetPortOrDefault()
		if target.Type == intstr.Int || !rules.IsPortName(target.StrVal) {
			continue
		}
		if !isDeclared(declared, port) && !isDeclaredIn(template, port) {
			errs = append(errs, field.Invalid(path.Index(i).Child("targetPort"), target.StrVal,
				fmt.Sprintf("no container declares a %s port with this name; use a number or declare the port in podTemplate",
					port.ProtocolOrDefault())))
		}
	}
	return errs
}

// isDeclared reports whether one of a container's ports is the named target of port.
func isDeclared(declared []corev1.ContainerPort, port *modelv1.Port) bool {
	return slices.ContainsFunc(declared, func(p corev1.ContainerPort) bool {
		tcp := p.Protocol == "" && port.ProtocolOrDefault() == corev1.ProtocolTCP
		return p.Name == port.TargetPort.StrVal && (tcp || p.Protocol == port.ProtocolOrDefault())
	})
}

func isDeclaredIn(template *corev1.PodTemplateSpec, port *modelv1.Port) bool {
	if template == nil {
		return false
	}
	for i := range template.Spec.Containers {
		if isDeclared(template.Spec.Containers[i].Ports, port) {
			return true
		}
	}
	for i := range template.Spec.InitContainers {
		c := &template.Spec.InitContainers[i]
		if isSidecar(c) && isDeclared(c.Ports, port) {
			return true
		}
	}
	return false
}

// isSidecar reports whether an init container keeps running beside the others (KEP-753).
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
