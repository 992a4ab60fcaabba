// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
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

// The defaults of startupProbe and progressDeadlineSeconds are newer than 0.1.0. They are added to an object
// that it stored with the first change of the pod template, and follow their source from then on.

const (
	startupPointer  = "/spec/startupProbe"
	deadlinePointer = "/spec/progressDeadlineSeconds"
)

const (
	// progressSeconds is the default of progressDeadlineSeconds without a startup probe, which
	// is that of a Deployment.
	progressSeconds = 600
	// minProgressSeconds is more than minReadySeconds of the Deployment, as Kubernetes requires.
	minProgressSeconds = 4
)

// newer sets these defaults, unless the object is a stored one that admission has seen.
func (d *defaults) newer(livenessIsDerived bool) {
	if d.unseen || d.stored != nil {
		d.startupProbe(livenessIsDerived)
		d.progressDeadline()
	}
}

// startupProbe sets the default of startupProbe.
func (d *defaults) startupProbe(livenessIsDerived bool) {
	is := d.spec.StartupProbe
	if d.givenStartup && is != nil && hasOtherAction(is) {
		if d.isDerivedPort(startupPointer, is, nil) && d.changesPods() {
			d.replaceAction(startupPointer, &d.spec.StartupProbe, intstr.IntOrString{}, false)
		}
		return
	}
	now := d.startupProbeFor(d.ownStartupProbe(), livenessIsDerived)
	switch {
	case is == now || equality.Semantic.DeepEqual(is, now):
	case is == nil:
		if d.addsNewer(hasStartupProbe) {
			d.setStartupProbe(now)
		}
	case is.ProbeHandler == (corev1.ProbeHandler{}) || d.changesPods():
		d.setStartupProbe(now)
	}
}

// startupProbeFor returns the startup probe for what clients set of it, which is nil if they
// set nothing. The default is the action of livenessProbe, if that is a derived one. Otherwise
// a probe without an action gets the same one as the other probes, and keeps its timing.
func (d *defaults) startupProbeFor(own *corev1.Probe, livenessIsDerived bool) *corev1.Probe {
	port, hasDefault := probePort(d.spec)
	empty := own == nil || *own == (corev1.Probe{})
	switch {
	case empty && livenessIsDerived:
		return defaultStartupProbe(port)
	case own == nil || own.ProbeHandler != (corev1.ProbeHandler{}) || !hasDefault:
		return own
	}
	now := *own
	now.TCPSocket = tcpSocket(port)
	return &now
}

func defaultStartupProbe(port intstr.IntOrString) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: tcpSocket(port)},
		PeriodSeconds: rules.StartupPeriodSeconds, FailureThreshold: rules.StartupFailureThreshold,
	}
}

// ownStartupProbe returns what clients set of startupProbe, nil if they did not set it.
func (d *defaults) ownStartupProbe() *corev1.Probe {
	is := d.spec.StartupProbe
	switch {
	case is == nil || d.old == nil:
		return is
	case !d.owners.HasManagedFields():
		// With the action of livenessProbe it stays, also where that has more fields, which a client set.
		if isDefaultStartupProbe(is) && equality.Semantic.DeepEqual(is, d.old.StartupProbe) && !probesPort(d.spec.LivenessProbe, is.TCPSocket.Port) {
			return nil
		}
		return is
	}
	own := *is
	d.withoutDerived(&own)
	if own == (corev1.Probe{}) && !d.owners.IsSet(startupPointer, nil) {
		return nil
	}
	return &own
}

// withoutDerived removes from a startup probe what can have been derived and no client set.
func (d *defaults) withoutDerived(probe *corev1.Probe) {
	if d.isDerivedPort(startupPointer, probe, nil) {
		host := probe.TCPSocket.Host
		keep := d.hasTCPSocket(startupPointer, probe.TCPSocket)
		if probe.TCPSocket = nil; keep {
			probe.TCPSocket = &corev1.TCPSocketAction{Host: host}
		}
	}
	if probe.PeriodSeconds == rules.StartupPeriodSeconds && !d.isNumberSet(startupPointer+"/periodSeconds", rules.StartupPeriodSeconds) {
		probe.PeriodSeconds = 0
	}
	if probe.FailureThreshold == rules.StartupFailureThreshold && !d.isNumberSet(startupPointer+"/failureThreshold", rules.StartupFailureThreshold) {
		probe.FailureThreshold = 0
	}
}

func (d *defaults) isNumberSet(pointer string, value int32) bool {
	return d.owners.IsSet(pointer, equals(strconv.Itoa(int(value))))
}

// setStartupProbe sets startupProbe, or removes it if the probe is nil. Of a probe that a client set, only
// what can be derived is sent: the rest can be of any length.
func (d *defaults) setStartupProbe(probe *corev1.Probe) {
	is := d.spec.StartupProbe
	switch {
	case probe == nil:
		patch.Unset(d.ops, startupPointer, &d.spec.StartupProbe)
		return
	case is == nil:
		patch.Set(d.ops, startupPointer, &d.spec.StartupProbe, probe)
		return
	}
	setPart(d.ops, startupPointer+"/periodSeconds", &is.PeriodSeconds, probe.PeriodSeconds)
	setPart(d.ops, startupPointer+"/failureThreshold", &is.FailureThreshold, probe.FailureThreshold)
	if is.TCPSocket != nil && probe.TCPSocket != nil {
		setPart(d.ops, startupPointer+"/tcpSocket/port", &is.TCPSocket.Port, probe.TCPSocket.Port)
	} else {
		setPart(d.ops, startupPointer+"/tcpSocket", &is.TCPSocket, probe.TCPSocket)
	}
}

// setPart sets a part of an object that differs, or removes it.
func setPart[T comparable](ops *patch.Ops, pointer string, is *T, now T) {
	switch {
	case *is == now:
	case now == *new(T):
		patch.Unset(ops, pointer, is)
	default:
		patch.Set(ops, pointer, is, now)
	}
}

func isDefaultStartupProbe(probe *corev1.Probe) bool {
	return probe.TCPSocket != nil && equality.Semantic.DeepEqual(probe, defaultStartupProbe(probe.TCPSocket.Port))
}

// progressDeadline sets the default of progressDeadlineSeconds, which is derived from
// startupProbe.
func (d *defaults) progressDeadline() {
	is, now := d.spec.ProgressDeadlineSeconds, progressDeadlineFor(d.spec.StartupProbe)
	switch {
	case is == nil:
		if !d.addsNewer(hasDeadline) {
			return
		}
	case *is == now || !d.isDerivedDeadline():
		return
	}
	patch.Set(d.ops, deadlinePointer, &d.spec.ProgressDeadlineSeconds, &now)
}

// progressDeadlineFor returns the default of progressDeadlineSeconds: the time that a startup
// probe gives a container to start, with Kubernetes' defaults for what it does not set, and as
// much again as a rollout without one has.
func progressDeadlineFor(startup *corev1.Probe) int32 {
	if startup == nil {
		return progressSeconds
	}
	return int32(min(progressSeconds+max(rules.ProbeSeconds(startup), 0), rules.MaxSeconds))
}

// isDerivedDeadline reports whether progressDeadlineSeconds can have been derived, and no
// client set it.
func (d *defaults) isDerivedDeadline() bool {
	value := *d.spec.ProgressDeadlineSeconds
	switch {
	case d.old == nil || value < progressSeconds:
		return false
	case d.owners.HasManagedFields():
		return !d.isNumberSet(deadlinePointer, value)
	}
	was := d.old.ProgressDeadlineSeconds
	return was != nil && *was == value && value == progressDeadlineFor(d.old.StartupProbe)
}
