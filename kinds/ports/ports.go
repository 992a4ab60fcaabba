// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ports holds the defaults and the validation rules of the ports of a Service.
package ports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/v1/pod"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const portsPointer = "/spec/ports"

// Default sets what can be derived from a port's number: protocol (TCP), targetPort (the
// number) and, if there are several ports, name (such as tcp-80). On update, before are
// the ports of the stored object, and owners is the ownership of the object's fields. On
// create, where a client set all fields, both are empty.
//
// A derived name is removed when its port is the only one left, so that the ports are the
// same as those of a new object with the same manifest.
//
// A port whose number is changed in place, by an editor or a JSON patch, is a new item to
// the API server, and the client that changes it owns all of its fields: its name and its
// targetPort keep their values, as those of a Service do.
func Default(ports, before []modelv1.Port, owners *fieldownership.Ownership, ops *patch.Ops) {
	if len(ports) > modelv1.MaxPorts {
		return // Validation refuses the list, and comparing its ports would be expensive.
	}
	for i := range ports {
		port := &ports[i]
		if port.Protocol == "" {
			patch.Set(ops, patch.At(portsPointer, i, "/protocol"), &port.Protocol, corev1.ProtocolTCP)
		}
		if modelv1.IsUnset(port.TargetPort) {
			patch.Set(ops, patch.At(portsPointer, i, "/targetPort"), &port.TargetPort, new(intstr.FromInt32(port.Port)))
		}
		switch alone := len(ports) == 1; {
		case alone && isDerivedName(port, before, owners):
			patch.Unset(ops, patch.At(portsPointer, i, "/name"), &port.Name)
		case !alone && port.Name == "":
			patch.Set(ops, patch.At(portsPointer, i, "/name"), &port.Name, derivedName(port))
		}
	}
}

// RemovesName reports whether Default removes the name of a port.
func RemovesName(ports, before []modelv1.Port, owners *fieldownership.Ownership) bool {
	return len(ports) == 1 && isDerivedName(&ports[0], before, owners)
}

// isDerivedName reports whether the name of a port was derived while there were several
// ports. Without managedFields, that is so if the stored port has the same name.
func isDerivedName(port *modelv1.Port, before []modelv1.Port, owners *fieldownership.Ownership) bool {
	if !owners.HasManagedFields() && len(before) < 2 || port.Name != derivedName(port) {
		return false
	}
	if owners.HasManagedFields() {
		return !owners.IsPortNameSet(port)
	}
	return slices.ContainsFunc(before, func(p modelv1.Port) bool { return p.IsSame(port) && p.Name == port.Name })
}

// derivedName returns the default name of one of several ports, such as tcp-80.
func derivedName(port *modelv1.Port) string {
	return strings.ToLower(string(port.ProtocolOrDefault())) + "-" + strconv.Itoa(int(port.Port))
}

// DefaultProbePort returns the port of default probes: that of the first TCP port that
// the main container itself declares, by number or by name. The kubelet resolves a name
// among the ports of the probe's own container, so a probe of a sidecar's port by name
// would never succeed.
func DefaultProbePort(ports []modelv1.Port) (intstr.IntOrString, bool) {
	ports = ports[:min(len(ports), modelv1.MaxPorts)]
	for i := range ports {
		target := ports[i].TargetPortOrDefault()
		if ports[i].ProtocolOrDefault() == corev1.ProtocolTCP && (target.Type == intstr.Int || isDeclared(modelv1.ContainerPorts(ports), &ports[i])) {
			return target, true
		}
	}
	return intstr.IntOrString{}, false
}

const portName = "must be 1 to 15 lower-case letters, digits and single dashes, at least one of them a letter, " +
	"with no dash at either end (RFC 6335)"

var protocols = []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}

// Validate returns the errors of the ports of a Service of a type. ValidateTargets validates named
// target ports.
func Validate(path *field.Path, ports []modelv1.Port, serviceType corev1.ServiceType) field.ErrorList {
	if len(ports) > modelv1.MaxPorts {
		return rules.MarkUnbuildable(field.TooMany(path, len(ports), modelv1.MaxPorts)) // ContainerPorts ignores the rest.
	}
	var errs field.ErrorList
	for i := range ports {
		at := path.Index(i)
		errs = append(errs, portNumbers(at, &ports[i], serviceType)...)
		errs = append(errs, portStrings(at, &ports[i])...)
		errs = append(errs, duplicatePort(at, ports, i)...)
		if ports[i].Name == "" && len(ports) > 1 {
			errs = append(errs, field.Required(at.Child("name"), "must be set if there is more than one port"))
		}
	}
	return errs
}

func portNumbers(at *field.Path, port *modelv1.Port, serviceType corev1.ServiceType) field.ErrorList {
	errs := rules.Between(at.Child("port"), &port.Port, 1, maxNumber)
	if target := port.TargetPort; !modelv1.IsUnset(target) && !isNumberOrName(*target) {
		errs = append(errs, field.Invalid(at.Child("targetPort"), *target, "must be a number between 1 and 65535, inclusive, or the name of a port"))
	}
	if port.NodePort != 0 {
		errs = append(errs, rules.Between(at.Child("nodePort"), &port.NodePort, 1, maxNumber)...)
	}
	if port.NodePort != 0 && serviceType == corev1.ServiceTypeClusterIP {
		errs = append(errs, field.Forbidden(at.Child("nodePort"), "nodePort may not be used if serviceType is ClusterIP; remove the nodePort or change serviceType"))
	}
	return errs
}

const maxNumber = 65535

func isNumberOrName(port intstr.IntOrString) bool {
	return port.Type == intstr.Int && port.IntVal >= 1 && port.IntVal <= maxNumber || port.Type == intstr.String && isPortName(port.StrVal)
}

// isPortName reports whether a name is valid for a port (RFC 6335).
func isPortName(name string) bool { return len(validation.IsValidPortName(name)) == 0 }

func portStrings(at *field.Path, port *modelv1.Port) field.ErrorList {
	var errs field.ErrorList
	if port.Name != "" && !isPortName(port.Name) {
		errs = append(errs, field.Invalid(at.Child("name"), port.Name, portName))
	}
	if !slices.Contains(protocols, port.ProtocolOrDefault()) {
		errs = append(errs, field.NotSupported(at.Child("protocol"), port.Protocol, protocols))
	}
	if port.AppProtocol != nil && *port.AppProtocol != "" && !isAppProtocol(*port.AppProtocol) {
		errs = append(errs, field.Invalid(at.Child("appProtocol"), *port.AppProtocol,
			"must be an IANA service name or a prefixed name such as kubernetes.io/h2c, 1 to 253 characters"))
	}
	return errs
}

// duplicatePort compares ports[i] with the earlier ports. Two ports with the same number
// and protocol get one error, although they may have the same name as well.
func duplicatePort(at *field.Path, ports []modelv1.Port, i int) field.ErrorList {
	port, before := &ports[i], ports[:i]
	if slices.ContainsFunc(before, func(p modelv1.Port) bool { return p.IsSame(port) }) {
		return field.ErrorList{field.Duplicate(at, string(port.ProtocolOrDefault())+" "+fmt.Sprint(port.Port))}
	}
	var errs field.ErrorList
	if port.Name != "" && slices.ContainsFunc(before, func(p modelv1.Port) bool { return p.Name == port.Name }) {
		errs = append(errs, field.Duplicate(at.Child("name"), port.Name))
	}
	if port.NodePort != 0 && slices.ContainsFunc(before, func(p modelv1.Port) bool { return p.NodePort == port.NodePort }) {
		errs = append(errs, field.Duplicate(at.Child("nodePort"), port.NodePort))
	}
	return errs
}

// NodePortWarnings returns warnings for node ports outside of the default range of the
// API server's --service-node-port-range.
func NodePortWarnings(path *field.Path, ports []modelv1.Port) []string {
	var out []string
	for i := range ports {
		if port := ports[i].NodePort; port != 0 && (port < 30000 || port > 32767) {
			out = append(out, fmt.Sprintf("%s: %d is outside the default range 30000-32767; the API server may refuse it",
				path.Index(i).Child("nodePort"), port))
		}
	}
	return out
}

func isAppProtocol(s string) bool {
	const maxLength = 253
	return len(s) <= maxLength && len(validation.IsQualifiedName(s)) == 0
}

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
