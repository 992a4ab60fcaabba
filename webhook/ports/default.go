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
	"github.com/modelbox-operator/modelbox-operator/webhook/fieldownership"
	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
)

const portsPointer = "/spec/ports"

// Default fills in what follows from a port's number: the protocol (TCP), the
// targetPort (the number) and, where there are several ports, the name (such as
// tcp-80). before are the ports of the stored object, and owners those of the object, on
// update; on create, where a client set all that is there, both are empty.
//
// A name that was filled in goes when its port is left alone, so that the ports are
// what the same manifest makes on create.
//
// A port whose number is changed in place, in an editor or by a JSON patch, is a new
// item to the API server, and the client that changes it owns all of its fields: its name
// and its targetPort keep their values, as those of a Service do.
func Default(ports, before []modelv1.Port, owners *fieldownership.Ownership, ops *patch.Ops) {
	if len(ports) > modelv1.MaxPorts {
		return // Refused anyway, and not worth comparing each with each.
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

// isDerivedName says whether a port has the name that was filled in while it was one
// of several. Without managedFields it is one if the port had it then.
func isDerivedName(port *modelv1.Port, before []modelv1.Port, owners *fieldownership.Ownership) bool {
	if !owners.HasManagedFields() && len(before) < 2 || port.Name != derivedName(port) {
		return false
	}
	if owners.HasManagedFields() {
		return !owners.IsPortNameSet(port)
	}
	return slices.ContainsFunc(before, func(p modelv1.Port) bool { return p.IsSame(port) && p.Name == port.Name })
}

// derivedName is the name of a port that has none and is not alone, such as tcp-80.
func derivedName(port *modelv1.Port) string {
	return strings.ToLower(string(port.ProtocolOrDefault())) + "-" + strconv.Itoa(int(port.Port))
}

// DefaultProbePort is the port for a probe that nobody wrote: that of the first TCP
// port which the main container itself declares, by number or by name. The kubelet
// looks a name up in the probe's own container, so a probe on the port of a sidecar
// by name would never succeed.
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
