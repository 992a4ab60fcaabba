// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// setProbes sets the defaults of the probes. That of startupProbe is the action of livenessProbe, if
// that is a derived one. Otherwise a startup probe without an action gets the same one as the other
// probes, and keeps its timing.
func setProbes(spec *modelv1.ModelBoxSpec) {
	setProbe(spec, &spec.ReadinessProbe)
	livenessIsDerived := setProbe(spec, &spec.LivenessProbe)
	switch is := spec.StartupProbe; {
	case is == nil && !livenessIsDerived:
	case livenessIsDerived && (is == nil || *is == corev1.Probe{}):
		port, _ := probePort(spec)
		spec.StartupProbe = defaultStartupProbe(port)
	default:
		setProbe(spec, &spec.StartupProbe)
	}
}

// setProbe sets the default action of a probe without one, which keeps its timing, and reports
// whether it did.
func setProbe(spec *modelv1.ModelBoxSpec, probe **corev1.Probe) (derived bool) {
	port, hasDefault := probePort(spec)
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

func defaultStartupProbe(port intstr.IntOrString) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: tcpSocket(port)},
		PeriodSeconds: rules.StartupPeriodSeconds, FailureThreshold: rules.StartupFailureThreshold,
	}
}

// progressSeconds is the default of progressDeadlineSeconds without a startup probe, which is that of
// a Deployment, and minProgressSeconds is more than minReadySeconds of the Deployment, as Kubernetes
// requires.
const (
	progressSeconds    = 600
	minProgressSeconds = 4
)

// setProgressDeadline sets the default of progressDeadlineSeconds: the time that a startup
// probe gives a container to start, with Kubernetes' defaults for what it does not set, and as
// much again as a rollout without one has.
func setProgressDeadline(spec *modelv1.ModelBoxSpec) {
	if spec.ProgressDeadlineSeconds != nil {
		return
	}
	seconds := int64(progressSeconds)
	if startup := spec.StartupProbe; startup != nil {
		seconds = min(progressSeconds+max(rules.ProbeSeconds(startup), 0), rules.MaxSeconds)
	}
	spec.ProgressDeadlineSeconds = new(int32(seconds))
}
