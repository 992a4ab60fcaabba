// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
)

const portsPointer = "/spec/ports"

// DefaultPorts fills in what follows from a port's number: the protocol (TCP), the
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
func DefaultPorts(ports, before []modelv1.Port, owners *Owners, ops *patch.Ops) {
	if len(ports) > MaxPorts {
		return // Refused anyway, and not worth comparing each with each.
	}
	for i := range ports {
		port := &ports[i]
		if port.Protocol == "" {
			patch.Set(ops, patch.At(portsPointer, i, "/protocol"), &port.Protocol, corev1.ProtocolTCP)
		}
		if Unset(port.TargetPort) {
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
func isDerivedName(port *modelv1.Port, before []modelv1.Port, owners *Owners) bool {
	if !owners.Known() && len(before) < 2 || port.Name != derivedName(port) {
		return false
	}
	if owners.Known() {
		return !owners.SetName(port)
	}
	return contains(before, func(p *modelv1.Port) bool { return samePort(p, port) && p.Name == port.Name })
}

// derivedName is the name of a port that has none and is not alone, such as tcp-80.
func derivedName(port *modelv1.Port) string {
	return strings.ToLower(string(Protocol(port))) + "-" + strconv.Itoa(int(port.Port))
}
