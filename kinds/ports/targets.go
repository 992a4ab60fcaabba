// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/v1/pod"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
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
		if target.Type == intstr.Int || !isPortName(target.StrVal) {
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
		return p.Name == port.TargetPort.StrVal && cmp.Or(p.Protocol, corev1.ProtocolTCP) == port.ProtocolOrDefault()
	})
}

func isDeclaredIn(template *corev1.PodTemplateSpec, port *modelv1.Port) bool {
	if template == nil {
		return false
	}
	for c, list := range pod.ContainerIter(&template.Spec, pod.Containers|pod.InitContainers) {
		// A sidecar is an init container that keeps running beside the others (KEP-753).
		if (list == pod.Containers || pod.IsRestartableInitContainer(c)) && isDeclared(c.Ports, port) {
			return true
		}
	}
	return false
}
