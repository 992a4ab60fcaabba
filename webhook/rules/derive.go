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
// tcp-80). before are the ports of the stored object, nil on create.
//
// A name or targetPort that was derived for a port of the stored object and that
// nobody typed is derived again. So a port loses a derived name when it is left
// alone: the ports then are what the same manifest makes on create, whichever way
// it was applied. (A client-side apply replaces the list, and with it every name
// that it doesn't know, so nothing that kept derived names would last.)
//
// A port whose number is changed in place, in an editor or by a JSON patch, is a
// new item to the API server, and whoever changed it owns all its fields: they
// stay as they read. Only where nobody is known to own anything do they follow.
func DefaultPorts(ports, before []modelv1.Port, owners *Owners, ops *patch.Ops) {
	if len(ports) > MaxPorts {
		return // Refused anyway, and not worth comparing each with each.
	}
	for i := range ports {
		port := &ports[i]
		if port.Protocol == "" {
			patch.Set(ops, patch.At(portsPointer, i, "/protocol"), &port.Protocol, corev1.ProtocolTCP)
		}
		was := predecessor(ports, before, i)
		defaultTargetPort(i, port, was, owners, ops)
		followName(i, ports, before, was, owners, ops)
		if port.Name == "" && len(ports) > 1 {
			patch.Set(ops, patch.At(portsPointer, i, "/name"), &port.Name, derivedName(port))
		}
	}
}

// predecessor is what ports[i] was before: the port of the same number and protocol
// or else, if it has gone, the one in the same place.
func predecessor(ports, before []modelv1.Port, i int) *modelv1.Port {
	if i < len(before) && samePort(&before[i], &ports[i]) {
		return &before[i]
	}
	for j := range before {
		if samePort(&before[j], &ports[i]) {
			return &before[j]
		}
	}
	if i >= len(before) || contains(ports, func(p *modelv1.Port) bool { return samePort(p, &before[i]) }) {
		return nil
	}
	return &before[i]
}

func defaultTargetPort(i int, port, was *modelv1.Port, owners *Owners, ops *patch.Ops) {
	if port.TargetPort != nil && !staleTargetPort(port, was, owners) {
		return
	}
	patch.Set(ops, patch.At(portsPointer, i, "/targetPort"), &port.TargetPort, new(intstr.FromInt32(port.Port)))
}

func staleTargetPort(port, was *modelv1.Port, owners *Owners) bool {
	if was == nil || was.Port == port.Port || was.TargetPort == nil {
		return false
	}
	derived := intstr.FromInt32(was.Port)
	return *was.TargetPort == derived && *port.TargetPort == derived && !owners.TypedPort(port, "targetPort")
}

// followName derives a name again that was derived before.
func followName(i int, ports, before []modelv1.Port, was *modelv1.Port, owners *Owners, ops *patch.Ops) {
	port := &ports[i]
	if was == nil || len(before) < 2 || port.Name == "" || port.Name != was.Name || was.Name != derivedName(was) {
		return
	}
	alone := len(ports) == 1
	if !alone && samePort(port, was) || owners.TypedPort(port, "name") {
		return
	}
	if alone {
		patch.Unset(ops, patch.At(portsPointer, i, "/name"), &port.Name)
	} else {
		patch.Set(ops, patch.At(portsPointer, i, "/name"), &port.Name, derivedName(port))
	}
}

// derivedName is the name of a port that has none and is not alone, such as tcp-80.
func derivedName(port *modelv1.Port) string {
	return strings.ToLower(string(Protocol(port))) + "-" + strconv.Itoa(int(port.Port))
}
