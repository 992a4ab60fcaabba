// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
	"github.com/modelbox-operator/modelbox-operator/webhook/ports"
)

func (d *defaults) probes() {
	var readiness, liveness *corev1.Probe
	if d.old != nil {
		readiness, liveness = d.old.ReadinessProbe, d.old.LivenessProbe
	}
	d.probe("/spec/readinessProbe", &d.spec.ReadinessProbe, readiness)
	d.probe("/spec/livenessProbe", &d.spec.LivenessProbe, liveness)
}

// probe derives one probe. What is derived is its action alone: a probe that is
// written without one keeps its timing, and one that gets another action by an
// apply, which merges, loses the derived one.
func (d *defaults) probe(path string, probe **corev1.Probe, was *corev1.Probe) {
	port, wanted := probePort(d.spec)
	switch {
	case *probe == nil:
		if wanted {
			patch.Set(d.ops, path, probe, &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: tcp(port)}})
		}
	case (*probe).ProbeHandler == corev1.ProbeHandler{}:
		switch {
		case wanted:
			patch.Set(d.ops, path+"/tcpSocket", &(*probe).TCPSocket, tcp(port))
		case d.isLeft(path, *probe):
			patch.Unset(d.ops, path, probe)
		}
	case d.isDerivedPort(path, *probe, was):
		wanted = wanted && !otherAction(*probe) && !d.hasTCPSocket(path, (*probe).TCPSocket)
		if !wanted || !isTCP(*probe, port) {
			d.replaceAction(path, probe, port, wanted)
		}
	}
}

// isLeft says whether a probe is what is left of one after a client took out all that
// was in it.
func (d *defaults) isLeft(path string, probe *corev1.Probe) bool {
	return d.owners.HasManagedFields() && bare(probe) && !d.owners.IsSet(path, nil)
}

// isDerivedPort says whether a probe has a TCP action whose port was derived.
func (d *defaults) isDerivedPort(path string, probe, was *corev1.Probe) bool {
	if d.old == nil || probe.TCPSocket == nil || probe.TCPSocket.Port == (intstr.IntOrString{}) {
		return false
	}
	if d.owners.HasManagedFields() {
		return !d.owners.IsSet(path+"/tcpSocket/port", is(probe.TCPSocket.Port.String()))
	}
	port, wanted := probePort(d.old)
	return wanted && isTCP(was, port) && !otherAction(was) && isTCP(probe, port) && bare(probe)
}

// hasTCPSocket says whether a client set a TCP action, though not its port.
func (d *defaults) hasTCPSocket(path string, action *corev1.TCPSocketAction) bool {
	return action.Host != "" || d.owners.IsSet(path+"/tcpSocket", nil)
}

// replaceAction puts the derived action for port in the place of an earlier one, or
// takes away what was derived, and the probe with it if no client set it.
func (d *defaults) replaceAction(path string, probe **corev1.Probe, port intstr.IntOrString, wanted bool) {
	switch {
	case wanted:
		patch.Set(d.ops, path+"/tcpSocket", &(*probe).TCPSocket, tcp(port))
	case d.hasTCPSocket(path, (*probe).TCPSocket):
		patch.Unset(d.ops, path+"/tcpSocket/port", &(*probe).TCPSocket.Port)
	case bare(*probe) && !d.owners.IsSet(path, nil):
		patch.Unset(d.ops, path, probe)
	default:
		patch.Unset(d.ops, path+"/tcpSocket", &(*probe).TCPSocket)
	}
}

// probePort is the port of the default probes, if there are to be any.
func probePort(spec *modelv1.ModelBoxSpec) (intstr.IntOrString, bool) {
	if spec.DefaultProbes == modelv1.DefaultProbesDisabled {
		return intstr.IntOrString{}, false
	}
	return ports.DefaultProbePort(spec.Ports)
}

// tcp is the default action. It says nothing but the port, so that how often and how
// long stay with the cluster.
func tcp(port intstr.IntOrString) *corev1.TCPSocketAction {
	return &corev1.TCPSocketAction{Port: port}
}

func isTCP(probe *corev1.Probe, port intstr.IntOrString) bool {
	return probe != nil && probe.TCPSocket != nil && *probe.TCPSocket == *tcp(port)
}

func otherAction(probe *corev1.Probe) bool {
	return probe.Exec != nil || probe.HTTPGet != nil || probe.GRPC != nil
}

// bare says whether there is nothing in a probe but a TCP action.
func bare(probe *corev1.Probe) bool {
	rest := *probe
	rest.TCPSocket = nil
	return rest == corev1.Probe{}
}
