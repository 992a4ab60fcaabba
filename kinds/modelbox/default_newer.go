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
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The defaults in this file are newer than 0.1.0. They are added to an object that it stored
// with the first change of the pod template, and follow their source from then on.

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

// setStartupProbe sets startupProbe, or removes it if the probe is nil.
func (d *defaults) setStartupProbe(probe *corev1.Probe) {
	if probe == nil {
		patch.Unset(d.ops, startupPointer, &d.spec.StartupProbe)
		return
	}
	patch.Set(d.ops, startupPointer, &d.spec.StartupProbe, probe)
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

// addsNewer reports whether a default that is newer than 0.1.0 is added: to a new object, to one
// that has the field, as it is stored or as its controller sees it, and to one whose pod template
// changes.
func (d *defaults) addsNewer(has func(*modelv1.ModelBoxSpec) bool) bool {
	if d.stored == nil || has(d.old) {
		return true
	}
	d.compare()
	return has(&d.was.Spec) || !samePods(d.spec, &d.was.Spec)
}

func hasStartupProbe(spec *modelv1.ModelBoxSpec) bool { return spec.StartupProbe != nil }

func hasDeadline(spec *modelv1.ModelBoxSpec) bool { return spec.ProgressDeadlineSeconds != nil }

// changesPods reports whether the client changes a field of the pod template, or one that they
// are derived from. If not, no field of the pod template is derived again.
func (d *defaults) changesPods() bool {
	if d.stored == nil {
		return true
	}
	d.compare()
	return d.changes
}

// compare compares the object that the client sent with the stored one, each with the defaults
// that its controller would set.
func (d *defaults) compare() {
	if d.was != nil {
		return
	}
	unseen := isUnseen(d.stored)
	d.was = completed(d.stored.Name, d.old, unseen)
	now := completed(d.box.Name, d.spec, unseen)
	d.changes = d.sentType != d.old.ResourceType || now.Spec.DefaultProbes != d.was.Spec.DefaultProbes ||
		!samePods(&now.Spec, &d.was.Spec)
}

// completed returns an object with the defaults that DefaultStored sets.
func completed(name string, spec *modelv1.ModelBoxSpec, unseen bool) *modelv1.ModelBox {
	box := &modelv1.ModelBox{Spec: *spec.DeepCopy()}
	box.Name = name
	(&defaults{box: box, spec: &box.Spec, unseen: unseen}).all()
	return box
}
