// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// maxAppProtocol is the maximum length of an appProtocol.
const maxAppProtocol = 253

const portName = "must be 1 to 15 lower-case letters, digits and single dashes, at least one of them a letter, " +
	"with no dash at either end (RFC 6335)"

var protocols = []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}

// Validate returns the errors of the ports of a Service. ValidateTargets validates named
// target ports.
func Validate(path *field.Path, ports []modelv1.Port) field.ErrorList {
	if len(ports) > modelv1.MaxPorts {
		return rules.MarkUnbuildable(field.TooMany(path, len(ports), modelv1.MaxPorts)) // ContainerPorts ignores the rest.
	}
	var errs field.ErrorList
	for i := range ports {
		at := func() *field.Path { return path.Index(i) } // Allocates, so it is called for errors only.
		errs = append(errs, portNumbers(at, &ports[i])...)
		errs = append(errs, portStrings(at, &ports[i])...)
		errs = append(errs, duplicatePort(at, ports, i)...)
		if ports[i].Name == "" && len(ports) > 1 {
			errs = append(errs, field.Required(at().Child("name"), "must be set if there is more than one port"))
		}
	}
	return errs
}

func portNumbers(at func() *field.Path, port *modelv1.Port) field.ErrorList {
	var errs field.ErrorList
	if !isNumber(port.Port) {
		errs = append(errs, field.Invalid(at().Child("port"), port.Port, portNumber))
	}
	if target := port.TargetPort; !modelv1.IsUnset(target) && !isNumberOrName(*target) {
		errs = append(errs, field.Invalid(at().Child("targetPort"), *target, "must be a number between 1 and 65535, inclusive, or the name of a port"))
	}
	if port.NodePort != 0 && !isNumber(port.NodePort) {
		errs = append(errs, field.Invalid(at().Child("nodePort"), port.NodePort, portNumber))
	}
	return errs
}

const portNumber = "must be between 1 and 65535, inclusive"

func isNumber(number int32) bool { return len(validation.IsValidPortNum(int(number))) == 0 }

func isNumberOrName(port intstr.IntOrString) bool {
	if port.Type == intstr.Int {
		return isNumber(port.IntVal)
	}
	return isPortName(port.StrVal)
}

// isPortName reports whether a name is valid for a port (RFC 6335).
func isPortName(name string) bool { return len(validation.IsValidPortName(name)) == 0 }

func portStrings(at func() *field.Path, port *modelv1.Port) field.ErrorList {
	var errs field.ErrorList
	if port.Name != "" && !isPortName(port.Name) {
		errs = append(errs, field.Invalid(at().Child("name"), port.Name, portName))
	}
	if !slices.Contains(protocols, port.ProtocolOrDefault()) {
		errs = append(errs, field.NotSupported(at().Child("protocol"), port.Protocol, protocols))
	}
	if port.AppProtocol != nil && *port.AppProtocol != "" && !isAppProtocol(*port.AppProtocol) {
		errs = append(errs, field.Invalid(at().Child("appProtocol"), *port.AppProtocol,
			"must be an IANA service name or a prefixed name such as kubernetes.io/h2c, 1 to 253 characters"))
	}
	return errs
}

// duplicatePort compares ports[i] with the earlier ports. Two ports with the same number
// and protocol get one error, although they may have the same name as well.
func duplicatePort(at func() *field.Path, ports []modelv1.Port, i int) field.ErrorList {
	port, before := &ports[i], ports[:i]
	if slices.ContainsFunc(before, func(p modelv1.Port) bool { return p.IsSame(port) }) {
		return field.ErrorList{field.Duplicate(at(), string(port.ProtocolOrDefault())+" "+fmt.Sprint(port.Port))}
	}
	var errs field.ErrorList
	if port.Name != "" && slices.ContainsFunc(before, func(p modelv1.Port) bool { return p.Name == port.Name }) {
		errs = append(errs, field.Duplicate(at().Child("name"), port.Name))
	}
	if port.NodePort != 0 && slices.ContainsFunc(before, func(p modelv1.Port) bool { return p.NodePort == port.NodePort }) {
		errs = append(errs, field.Duplicate(at().Child("nodePort"), port.NodePort))
	}
	return errs
}

// ValidateNodePorts refuses node ports if the type of the Service is ClusterIP.
func ValidateNodePorts(path *field.Path, ports []modelv1.Port, serviceType corev1.ServiceType) field.ErrorList {
	if serviceType != corev1.ServiceTypeClusterIP {
		return nil
	}
	var errs field.ErrorList
	for i := range ports {
		if ports[i].NodePort != 0 {
			errs = append(errs, field.Forbidden(path.Index(i).Child("nodePort"),
				"nodePort may not be used if serviceType is ClusterIP; remove the nodePort or change serviceType"))
		}
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
	return len(s) <= maxAppProtocol && len(validation.IsQualifiedName(s)) == 0
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
