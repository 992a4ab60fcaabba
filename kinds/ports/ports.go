// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ports holds the defaults and the validation rules of the ports of a Service.
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
