// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

const (
	// MaxPorts is the most ports that an object may have.
	MaxPorts = 64
	// maxAppProtocol is the most characters of an appProtocol.
	maxAppProtocol = 253
)

const (
	portNumber = "must be a number from 1 to 65535"
	portName   = "must be 1 to 15 lower-case letters, digits and single dashes, at least one of them a letter, " +
		"with no dash at either end (RFC 6335)"
)

var protocols = []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}

// Ports judges the ports of a Service, each for itself and all together. Whether a
// named target port exists is for TargetPorts to say.
func Ports(path *field.Path, ports []modelv1.Port) field.ErrorList {
	if len(ports) > MaxPorts {
		return unbuildable(field.TooMany(path, len(ports), MaxPorts)) // ContainerPorts leaves the rest out.
	}
	var errs field.ErrorList
	for i := range ports {
		at := func() *field.Path { return path.Index(i) } // Made for errors alone.
		errs = append(errs, portNumbers(at, &ports[i])...)
		errs = append(errs, portWords(at, &ports[i])...)
		errs = append(errs, repeatedPort(at, ports, i)...)
		if ports[i].Name == "" && len(ports) > 1 {
			errs = append(errs, field.Required(at().Child("name"), "with several ports, each needs a name"))
		}
	}
	return errs
}

func portNumbers(at func() *field.Path, port *modelv1.Port) field.ErrorList {
	var errs field.ErrorList
	if !isPort(port.Port) {
		errs = append(errs, field.Invalid(at().Child("port"), port.Port, portNumber))
	}
	if !Unset(port.TargetPort) && !isNumberOrName(*port.TargetPort) {
		errs = append(errs, notAPort(at().Child("targetPort"), *port.TargetPort))
	}
	if port.NodePort != 0 && !isPort(port.NodePort) {
		errs = append(errs, field.Invalid(at().Child("nodePort"), port.NodePort, portNumber))
	}
	return errs
}

func portWords(at func() *field.Path, port *modelv1.Port) field.ErrorList {
	var errs field.ErrorList
	if port.Name != "" && !isPortName(port.Name) {
		errs = append(errs, field.Invalid(at().Child("name"), port.Name, portName))
	}
	if !slices.Contains(protocols, Protocol(port)) {
		errs = append(errs, field.NotSupported(at().Child("protocol"), port.Protocol, protocols))
	}
	if port.AppProtocol != nil && *port.AppProtocol != "" && !isAppProtocol(*port.AppProtocol) {
		errs = append(errs, field.Invalid(at().Child("appProtocol"), *port.AppProtocol,
			"must be an IANA service name or a prefixed name such as kubernetes.io/h2c, 1 to 253 characters"))
	}
	return errs
}

// repeatedPort compares ports[i] with those before it. One error is enough for two
// ports that are the same port: their names repeat because of it.
func repeatedPort(at func() *field.Path, ports []modelv1.Port, i int) field.ErrorList {
	port, before := &ports[i], ports[:i]
	if contains(before, func(p *modelv1.Port) bool { return samePort(p, port) }) {
		return field.ErrorList{field.Duplicate(at(), string(Protocol(port))+" "+fmt.Sprint(port.Port))}
	}
	var errs field.ErrorList
	if port.Name != "" && contains(before, func(p *modelv1.Port) bool { return p.Name == port.Name }) {
		errs = append(errs, field.Duplicate(at().Child("name"), port.Name))
	}
	if port.NodePort != 0 && contains(before, func(p *modelv1.Port) bool { return p.NodePort == port.NodePort }) {
		errs = append(errs, field.Duplicate(at().Child("nodePort"), port.NodePort))
	}
	return errs
}

// NodePorts refuses ports on the nodes for a Service that has none.
func NodePorts(path *field.Path, ports []modelv1.Port, serviceType corev1.ServiceType) field.ErrorList {
	if serviceType != corev1.ServiceTypeClusterIP {
		return nil
	}
	var errs field.ErrorList
	for i := range ports {
		if ports[i].NodePort != 0 {
			errs = append(errs, field.Forbidden(path.Index(i).Child("nodePort"),
				"a nodePort needs serviceType NodePort or LoadBalancer: remove the nodePort or change serviceType"))
		}
	}
	return errs
}

// NodePortWarnings are sentences on ports that the cluster will refuse unless its
// owner changed the range for nodes (--service-node-port-range of the API server).
func NodePortWarnings(path *field.Path, ports []modelv1.Port) []string {
	var out []string
	for i := range ports {
		if port := ports[i].NodePort; port != 0 && (port < 30000 || port > 32767) {
			out = append(out, fmt.Sprintf("%s: %d is outside 30000-32767, which a cluster refuses unless its owner set another range",
				path.Index(i).Child("nodePort"), port))
		}
	}
	return out
}

func isPort(number int32) bool { return 1 <= number && number <= 65535 }

func isPortName(name string) bool { return len(validation.IsValidPortName(name)) == 0 }

func isAppProtocol(s string) bool {
	return len(s) <= maxAppProtocol && len(validation.IsQualifiedName(s)) == 0
}

// isNumberOrName says whether a value can be a port's number or its name.
func isNumberOrName(v intstr.IntOrString) bool {
	if v.Type == intstr.Int {
		return isPort(v.IntVal)
	}
	return isPortName(v.StrVal)
}

// notAPort is the error for a value that is not isNumberOrName.
func notAPort(path *field.Path, v intstr.IntOrString) *field.Error {
	return field.Invalid(path, v, portNumber+", or the name of a port")
}
