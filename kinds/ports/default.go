// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// Default sets what can be derived from a port's number: protocol (TCP), targetPort (the
// number) and, if there are several ports, name (such as tcp-80).
func Default(ports []modelv1.Port) {
	if len(ports) > modelv1.MaxPorts {
		return // Validation refuses the list.
	}
	for i := range ports {
		port := &ports[i]
		port.Protocol = cmp.Or(port.Protocol, corev1.ProtocolTCP)
		if modelv1.IsUnset(port.TargetPort) {
			port.TargetPort = new(intstr.FromInt32(port.Port))
		}
		if len(ports) > 1 && port.Name == "" {
			port.Name = derivedName(port)
		}
	}
}

// IsDerivedName reports whether a value of a spec can be the derived name of a port. Other values
// cannot.
func IsDerivedName(leaf *kinds.Leaf) bool {
	var protocol string
	var number int64
	for _, field := range *leaf.Path[1].Key {
		switch value := field.Value.Unstructured().(type) {
		case string:
			protocol = value
		case int64:
			number = value
		}
	}
	return leaf.Name() == "name" && leaf.Value == nameOf(protocol, number)
}

// derivedName returns the default name of one of several ports, such as tcp-80.
func derivedName(port *modelv1.Port) string {
	return nameOf(string(port.ProtocolOrDefault()), int64(port.Port))
}

func nameOf(protocol string, number int64) string {
	return strings.ToLower(protocol) + "-" + strconv.FormatInt(number, 10)
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
