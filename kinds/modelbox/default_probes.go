// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
)

// probes sets the defaults of readinessProbe and livenessProbe, and reports whether the
// action of the latter is a derived one.
func (d *defaults) probes() (livenessIsDerived bool) {
	var readiness, liveness *corev1.Probe
	if d.old != nil {
		readiness, liveness = d.old.ReadinessProbe, d.old.LivenessProbe
	}
	d.probe("/spec/readinessProbe", &d.spec.ReadinessProbe, readiness)
	return d.probe("/spec/livenessProbe", &d.spec.LivenessProbe, liveness)
}

// probe sets the default of one probe, and reports whether its action is a derived one. Only
// the action is derived: a probe without an action keeps its timing, and a probe that gets
// another action by an apply, which merges, loses the derived one.
func (d *defaults) probe(path string, probe **corev1.Probe, was *corev1.Probe) (derived bool) {
	port, hasDefault := probePort(d.spec)
	switch {
	case *probe == nil:
		if hasDefault {
			patch.Set(d.ops, path, probe, &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: tcpSocket(port)}})
		}
		return hasDefault
	case (*probe).ProbeHandler == corev1.ProbeHandler{}:
		switch {
		case hasDefault:
			patch.Set(d.ops, path+"/tcpSocket", &(*probe).TCPSocket, tcpSocket(port))
		case d.isEmptied(path, *probe):
			patch.Unset(d.ops, path, probe)
		}
		return hasDefault
	case d.isDerivedPort(path, *probe, was):
		hasDefault = hasDefault && !hasOtherAction(*probe) && !d.hasTCPSocket(path, (*probe).TCPSocket)
		if (!hasDefault || !probesPort(*probe, port)) && d.changesPods() {
			d.replaceAction(path, probe, port, hasDefault)
		}
		return hasDefault
	}
	return false
}

// isEmptied reports whether a probe is empty because a client removed all of its fields.
func (d *defaults) isEmptied(path string, probe *corev1.Probe) bool {
	return d.owners.HasManagedFields() && isTCPOnly(probe) && !d.owners.IsSet(path, nil)
}

// isDerivedPort reports whether a probe has a TCP action with a derived port.
func (d *defaults) isDerivedPort(path string, probe, was *corev1.Probe) bool {
	if d.old == nil || probe.TCPSocket == nil || probe.TCPSocket.Port == (intstr.IntOrString{}) {
		return false
	}
	if d.owners.HasManagedFields() {
		return !d.owners.IsSet(path+"/tcpSocket/port", equals(probe.TCPSocket.Port.String()))
	}
	port, hasDefault := probePort(d.old)
	return hasDefault && probesPort(was, port) && !hasOtherAction(was) && probesPort(probe, port) && isTCPOnly(probe)
}

// hasTCPSocket reports whether a client set a TCP action, although not its port.
func (d *defaults) hasTCPSocket(path string, action *corev1.TCPSocketAction) bool {
	return action.Host != "" || d.owners.IsSet(path+"/tcpSocket", nil)
}

// replaceAction replaces the derived action by one for port, or removes what was derived,
// and with it the probe if no client set it.
func (d *defaults) replaceAction(path string, probe **corev1.Probe, port intstr.IntOrString, hasDefault bool) {
	switch {
	case hasDefault:
		patch.Set(d.ops, path+"/tcpSocket", &(*probe).TCPSocket, tcpSocket(port))
	case d.hasTCPSocket(path, (*probe).TCPSocket):
		patch.Unset(d.ops, path+"/tcpSocket/port", &(*probe).TCPSocket.Port)
	case isTCPOnly(*probe) && !d.owners.IsSet(path, nil):
		patch.Unset(d.ops, path, probe)
	default:
		patch.Unset(d.ops, path+"/tcpSocket", &(*probe).TCPSocket)
	}
}

// probePort returns the port of the default probes, and false if there are none.
func probePort(spec *modelv1.ModelBoxSpec) (intstr.IntOrString, bool) {
	if spec.DefaultProbes == modelv1.DefaultProbesDisabled {
		return intstr.IntOrString{}, false
	}
	return ports.DefaultProbePort(spec.Ports)
}

// tcpSocket returns the default action. It has only a port, so that the timing has the
// defaults of Kubernetes.
func tcpSocket(port intstr.IntOrString) *corev1.TCPSocketAction {
	return &corev1.TCPSocketAction{Port: port}
}

// probesPort reports whether a probe has the default action for port.
func probesPort(probe *corev1.Probe, port intstr.IntOrString) bool {
	return probe != nil && probe.TCPSocket != nil && *probe.TCPSocket == *tcpSocket(port)
}

func hasOtherAction(probe *corev1.Probe) bool {
	return probe.Exec != nil || probe.HTTPGet != nil || probe.GRPC != nil
}

// isTCPOnly reports whether a probe has no fields but a TCP action.
func isTCPOnly(probe *corev1.Probe) bool {
	rest := *probe
	rest.TCPSocket = nil
	return rest == corev1.Probe{}
}
