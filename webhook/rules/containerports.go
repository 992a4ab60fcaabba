// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// containerPorts judges the ports that a container of the template declares.
func containerPorts(path *field.Path, ports []corev1.ContainerPort) field.ErrorList {
	var errs field.ErrorList
	for i := range ports {
		errs = append(errs, containerPort(path.Index(i), &ports[i])...)
	}
	errs = append(errs, unique(path, "name", ports, func(p *corev1.ContainerPort) string { return p.Name })...)
	repeats(ports, numberAndProtocol, func(i int) {
		errs = append(errs, field.Duplicate(path.Index(i).Child("containerPort"), ports[i].ContainerPort))
	})
	return errs
}

func containerPort(path *field.Path, p *corev1.ContainerPort) field.ErrorList {
	var errs field.ErrorList
	if p.Name != "" && !isPortName(p.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), p.Name, portName))
	}
	if !isPort(p.ContainerPort) {
		errs = append(errs, field.Invalid(path.Child("containerPort"), p.ContainerPort, portNumber))
	}
	if p.HostPort != 0 && !isPort(p.HostPort) {
		errs = append(errs, field.Invalid(path.Child("hostPort"), p.HostPort, portNumber))
	}
	if p.Protocol != "" && !slices.Contains(protocols, p.Protocol) {
		errs = append(errs, field.NotSupported(path.Child("protocol"), p.Protocol, protocols))
	}
	return errs
}

type containerPortKey struct {
	number   int32
	protocol corev1.Protocol
}

// numberAndProtocol is what a port is known by in server-side apply, which refuses
// a repeated one.
func numberAndProtocol(p *corev1.ContainerPort) containerPortKey {
	if p.Protocol == "" {
		return containerPortKey{p.ContainerPort, corev1.ProtocolTCP}
	}
	return containerPortKey{p.ContainerPort, p.Protocol}
}
