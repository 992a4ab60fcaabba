// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// Default fills in what box leaves open and records it in ops, which may be nil. old
// is the stored object on update, nil on create. What was typed is left alone:
// podTemplate is not looked at, and of the rest only what is missing is written.
//
// A default that was derived from other fields follows them. If it is in old as old
// derives it, is in box as it is in old, and nobody typed it (see rules.Owners), it
// is derived again from box, which can mean that it goes. So an object becomes what
// its manifest makes of a new one, whatever it was before. An object without
// managedFields, which only exists in memory, is judged by equality alone.
//
// Default(Default(x)) is Default(x).
func Default(box, old *modelv1.ModelBox, ops *patch.Ops) {
	d := &defaults{spec: &box.Spec, owners: rules.OwnersOf(&box.ObjectMeta), ops: ops}
	if old != nil {
		d.old = &old.Spec
	}
	d.name(box.Name)
	d.fixed()
	d.resourceType()
	d.resources()
	d.ports()
	d.serviceType()
	d.probes()
}

type defaults struct {
	spec, old *modelv1.ModelBoxSpec
	owners    rules.Owners
	ops       *patch.Ops
}

// name is the object's. An object that is created by generateName has none when
// admission sees it (the API server makes the name later, in Store.create of
// k8s.io/apiserver/pkg/registry/generic/registry), so the field stays empty until
// the next change of the spec, and whoever reads it must default it until then.
func (d *defaults) name(object string) {
	if d.spec.Name == "" && object != "" {
		patch.Set(d.ops, "/spec/name", &d.spec.Name, object)
	}
}

// fixed fills in the defaults that depend on nothing. The schema has them as well;
// an object that was read before the schema had them may lack them.
func (d *defaults) fixed() {
	if d.spec.Replicas == nil {
		patch.Set(d.ops, "/spec/replicas", &d.spec.Replicas, new(int32(1)))
	}
	if d.spec.RollingUpdate == nil {
		patch.Set(d.ops, "/spec/rollingUpdate", &d.spec.RollingUpdate, new(intstr.FromString("25%")))
	}
	if d.spec.DefaultProbes == "" {
		patch.Set(d.ops, "/spec/defaultProbes", &d.spec.DefaultProbes, modelv1.DefaultProbesEnabled)
	}
}

// resourceType is custom if resources are given, and small otherwise.
func (d *defaults) resourceType() {
	if d.spec.ResourceType == "" {
		given := d.spec.Resources != nil && !d.leftover()
		patch.Set(d.ops, "/spec/resourceType", &d.spec.ResourceType, typeFor(given))
		return
	}
	if now := typeFor(d.spec.Resources != nil); d.spec.ResourceType != now && d.staleType() {
		patch.Set(d.ops, "/spec/resourceType", &d.spec.ResourceType, now)
	}
}

func typeFor(given bool) modelv1.ResourceType {
	if given {
		return modelv1.ResourceTypeCustom
	}
	return modelv1.ResourceTypeSmall
}

// staleType says whether resourceType is one that was derived, while the resources
// that it was derived from have come or gone. A wrong guess would turn a refusal into
// a change, so equality is not enough here: there must be managedFields, and nobody
// in them who owns the field.
func (d *defaults) staleType() bool {
	if d.old == nil || d.spec.ResourceType != d.old.ResourceType || !d.owners.Known() {
		return false
	}
	changed := false
	switch d.spec.ResourceType {
	case modelv1.ResourceTypeSmall:
		small := presetOf(modelv1.ResourceTypeSmall)
		changed = small.is(d.old.Resources) && !small.is(d.spec.Resources)
	case modelv1.ResourceTypeCustom:
		changed = d.old.Resources != nil && d.spec.Resources == nil
	}
	return changed && !d.owners.Typed("spec", "resourceType")
}

func (d *defaults) resources() {
	preset := presetOf(d.spec.ResourceType)
	switch {
	case preset == nil:
		d.shed()
	case d.spec.Resources == nil, !preset.is(d.spec.Resources) && d.leftover():
		now, _ := Preset(preset.name)
		patch.Set(d.ops, "/spec/resources", &d.spec.Resources, &now)
	}
}

// leftover says whether the resources are what the old resource type stood for.
func (d *defaults) leftover() bool {
	was := d.wasPreset()
	return was != nil && was.is(d.spec.Resources) && !d.owners.Typed("spec", "resources")
}

// wasPreset is the preset that old's resources were derived from.
func (d *defaults) wasPreset() *preset {
	if d.old == nil {
		return nil
	}
	if was := presetOf(d.old.ResourceType); was != nil && was.is(d.old.Resources) {
		return was
	}
	return nil
}

// shed removes from resources that somebody declares, under custom, what is left of
// a preset: an apply merges them into those that were derived, and a limit below
// the preset's would be refused for a request that nobody wrote. Where nobody
// declares them, whoever turns a preset into custom keeps its values, now as
// their own.
func (d *defaults) shed() {
	was := d.wasPreset()
	if was == nil || d.spec.Resources == nil || !d.owners.Declared("spec", "resources") {
		return
	}
	d.shedList("limits", &d.spec.Resources.Limits, was)
	d.shedList("requests", &d.spec.Resources.Requests, was)
}

func (d *defaults) shedList(name string, list *corev1.ResourceList, was *preset) {
	path := "/spec/resources/" + name
	for resource, quantity := range was.list() {
		have, ok := (*list)[resource]
		if ok && have.Cmp(quantity) == 0 && !d.owners.Typed("spec", "resources", name, string(resource)) {
			patch.Unset(d.ops, patch.Key(path, string(resource)), &have)
			delete(*list, resource)
		}
	}
	if *list != nil && len(*list) == 0 && !d.owners.Typed("spec", "resources", name) {
		patch.Unset(d.ops, path, list)
	}
}

func (d *defaults) ports() {
	var before []modelv1.Port
	if d.old != nil {
		before = d.old.Ports
	}
	rules.DefaultPorts(d.spec.Ports, before, &d.owners, d.ops)
}

// serviceType is filled in without ports as well, where no Service is made: it says
// what the first port would get, and a reader never finds it empty.
func (d *defaults) serviceType() {
	now := rules.ServiceType(d.spec.Ports)
	if d.spec.ServiceType == "" || d.spec.ServiceType != now && d.staleServiceType() {
		patch.Set(d.ops, "/spec/serviceType", &d.spec.ServiceType, now)
	}
}

func (d *defaults) staleServiceType() bool {
	return d.old != nil && d.spec.ServiceType == d.old.ServiceType &&
		d.old.ServiceType == rules.ServiceType(d.old.Ports) && !d.owners.Typed("spec", "serviceType")
}

func (d *defaults) probes() {
	var readiness, liveness *corev1.Probe
	if d.old != nil {
		readiness, liveness = d.old.ReadinessProbe, d.old.LivenessProbe
	}
	d.probe("readinessProbe", &d.spec.ReadinessProbe, readiness)
	d.probe("livenessProbe", &d.spec.LivenessProbe, liveness)
}

// probe derives one probe. What is derived is its action alone: a probe that is
// written without one keeps its timing, and one that gets another action by an
// apply, which merges, loses the derived one.
func (d *defaults) probe(name string, probe **corev1.Probe, was *corev1.Probe) {
	port, wanted := probePort(d.spec)
	switch {
	case *probe == nil:
		if wanted {
			patch.Set(d.ops, "/spec/"+name, probe, &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: tcp(port)}})
		}
	case (*probe).ProbeHandler == corev1.ProbeHandler{}:
		if wanted {
			patch.Set(d.ops, "/spec/"+name+"/tcpSocket", &(*probe).TCPSocket, tcp(port))
		}
	default:
		wanted = wanted && !otherAction(*probe)
		if (!wanted || !isTCP(*probe, port)) && d.staleAction(name, *probe, was) {
			d.replaceAction(name, probe, port, wanted)
		}
	}
}

// staleAction says whether a probe's action was derived. Beside anything else in the
// probe it takes more than equality: somebody must be known to own the rest.
func (d *defaults) staleAction(name string, probe, was *corev1.Probe) bool {
	if d.old == nil {
		return false
	}
	port, wanted := probePort(d.old)
	if !wanted || !isTCP(was, port) || otherAction(was) || !isTCP(probe, port) {
		return false
	}
	return (bare(probe) || d.owners.Known()) && !d.owners.Typed("spec", name, "tcpSocket")
}

// replaceAction puts the derived action for port in the place of an earlier one, or
// takes that away, and the probe with it if nothing else is in it.
func (d *defaults) replaceAction(name string, probe **corev1.Probe, port intstr.IntOrString, wanted bool) {
	switch {
	case wanted:
		patch.Set(d.ops, "/spec/"+name+"/tcpSocket", &(*probe).TCPSocket, tcp(port))
	case bare(*probe):
		patch.Unset(d.ops, "/spec/"+name, probe)
	default:
		patch.Unset(d.ops, "/spec/"+name+"/tcpSocket", &(*probe).TCPSocket)
	}
}

// probePort is the port of the default probes, if there are to be any.
func probePort(spec *modelv1.ModelBoxSpec) (intstr.IntOrString, bool) {
	if spec.DefaultProbes == modelv1.DefaultProbesDisabled {
		return intstr.IntOrString{}, false
	}
	return rules.DefaultProbePort(spec.Ports)
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
