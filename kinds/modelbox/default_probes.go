// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// probes sets the defaults of the probes, and of what is derived from them.
func (d *defaults) probes() {
	d.probe(&d.spec.ReadinessProbe)
	livenessIsDerived := d.probe(&d.spec.LivenessProbe)
	// These defaults are newer than 0.1.0. They are added to an object that it stored with the first change of the pod
	// template, and follow their source from then on.
	if d.unseen || d.stored != nil {
		d.startupProbe(livenessIsDerived)
		d.progressDeadline()
	}
}

// probe sets the default action of a probe without one, which keeps its timing, and reports whether it did.
func (d *defaults) probe(probe **corev1.Probe) (derived bool) {
	port, hasDefault := probePort(d.spec)
	if !hasDefault || *probe != nil && (*probe).ProbeHandler != (corev1.ProbeHandler{}) {
		return false
	}
	if *probe == nil {
		*probe = &corev1.Probe{}
	}
	(*probe).TCPSocket = tcpSocket(port)
	return true
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

func hasOtherAction(probe *corev1.Probe) bool {
	return probe != nil && (probe.Exec != nil || probe.HTTPGet != nil || probe.GRPC != nil)
}

const (
	// progressSeconds is the default of progressDeadlineSeconds without a startup probe, which
	// is that of a Deployment.
	progressSeconds = 600
	// minProgressSeconds is more than minReadySeconds of the Deployment, as Kubernetes requires.
	minProgressSeconds = 4
)

// startupProbe sets the default of startupProbe, which is the action of livenessProbe, if that is a derived one.
// Otherwise a probe without an action gets the same one as the other probes, and keeps its timing.
func (d *defaults) startupProbe(livenessIsDerived bool) {
	port, _ := probePort(d.spec)
	switch is := d.spec.StartupProbe; {
	case is == nil && (!livenessIsDerived || !d.addsNewer(hasStartupProbe)):
	case livenessIsDerived && (is == nil || *is == corev1.Probe{}):
		d.spec.StartupProbe = defaultStartupProbe(port)
	default:
		d.probe(&d.spec.StartupProbe)
	}
}

func defaultStartupProbe(port intstr.IntOrString) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: tcpSocket(port)},
		PeriodSeconds: rules.StartupPeriodSeconds, FailureThreshold: rules.StartupFailureThreshold,
	}
}

func isDefaultStartupProbe(probe *corev1.Probe) bool {
	return probe != nil && probe.TCPSocket != nil && equality.Semantic.DeepEqual(probe, defaultStartupProbe(probe.TCPSocket.Port))
}

// progressDeadline sets the default of progressDeadlineSeconds: the time that a startup
// probe gives a container to start, with Kubernetes' defaults for what it does not set, and as
// much again as a rollout without one has.
func (d *defaults) progressDeadline() {
	if d.spec.ProgressDeadlineSeconds != nil || !d.addsNewer(hasDeadline) {
		return
	}
	seconds := int64(progressSeconds)
	if startup := d.spec.StartupProbe; startup != nil {
		seconds = min(progressSeconds+max(rules.ProbeSeconds(startup), 0), rules.MaxSeconds)
	}
	d.spec.ProgressDeadlineSeconds = new(int32(seconds))
}
