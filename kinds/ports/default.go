// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
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
