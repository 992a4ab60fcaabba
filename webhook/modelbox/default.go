// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/fieldownership"
	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
	"github.com/modelbox-operator/modelbox-operator/webhook/ports"
	"github.com/modelbox-operator/modelbox-operator/webhook/quantity"
)

// Default sets the defaults of box and records them in ops, which may be nil. old is the
// stored object on update, nil on create. podTemplate has no defaults.
//
// A default that is derived from other fields follows them: on update, a value that no
// client set (see fieldownership.Ownership) and that can have been derived is derived
// again from box, or removed. So the spec is that of a new object with the fields that
// clients set, whatever the object was before. Without managedFields, a value is taken
// for a derived one if box and old have the same value and old derives it.
//
// Default is idempotent.
func Default(box, old *modelv1.ModelBox, ops *patch.Ops) {
	d := &defaults{spec: &box.Spec, ops: ops}
	if old != nil {
		d.old, d.owners = &old.Spec, fieldownership.Of(&box.ObjectMeta)
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
	owners    fieldownership.Ownership // Empty on create, because the client sets all fields of a new object.
	ops       *patch.Ops
}

// name defaults to the name of the object. An object with generateName has no name during
// admission (the API server generates it later, in Store.create of
// k8s.io/apiserver/pkg/registry/generic/registry), so the field remains empty until the
// next change of the spec, and its readers must default it until then.
func (d *defaults) name(object string) {
	if d.spec.Name == "" && object != "" {
		patch.Set(d.ops, "/spec/name", &d.spec.Name, object)
	}
}

// fixed sets the defaults that do not depend on other fields. The schema sets them as
// well, but not in objects that were stored before the schema had them.
func (d *defaults) fixed() {
	if d.spec.Replicas == nil {
		patch.Set(d.ops, "/spec/replicas", &d.spec.Replicas, new(int32(1)))
	}
	if modelv1.IsUnset(d.spec.RollingUpdate) {
		patch.Set(d.ops, "/spec/rollingUpdate", &d.spec.RollingUpdate, new(intstr.FromString("25%")))
	}
	if d.spec.DefaultProbes == "" {
		patch.Set(d.ops, "/spec/defaultProbes", &d.spec.DefaultProbes, modelv1.DefaultProbesEnabled)
	}
}

func (d *defaults) ports() {
	var before []modelv1.Port
	if d.old != nil {
		before = d.old.Ports
	}
	ports.Default(d.spec.Ports, before, &d.owners, d.ops)
}

// serviceType has a default without ports as well, although there is no Service then, so
// that the field is never empty.
func (d *defaults) serviceType() {
	now := modelv1.DefaultServiceType(d.spec.Ports)
	if d.spec.ServiceType == "" || d.spec.ServiceType != now && d.isDerivedServiceType() {
		patch.Set(d.ops, "/spec/serviceType", &d.spec.ServiceType, now)
	}
}

func (d *defaults) isDerivedServiceType() bool {
	switch {
	case d.old == nil, d.spec.ServiceType != corev1.ServiceTypeClusterIP && d.spec.ServiceType != corev1.ServiceTypeNodePort:
		return false
	case d.owners.HasManagedFields():
		return !d.owners.IsSet("/spec/serviceType", equals(d.spec.ServiceType))
	}
	return d.spec.ServiceType == d.old.ServiceType && d.old.ServiceType == modelv1.DefaultServiceType(d.old.Ports)
}

// equals returns a function that reports whether a text of a manifest is value.
func equals[T ~string](value T) func(string) bool {
	return func(text string) bool { return text == string(value) }
}

// resourceType defaults to custom if resources are set, and to small otherwise.
func (d *defaults) resourceType() {
	if d.spec.ResourceType != "" && !d.isDerivedType() {
		return
	}
	if now := d.derivedType(); d.spec.ResourceType != now {
		patch.Set(d.ops, "/spec/resourceType", &d.spec.ResourceType, now)
	}
}

func (d *defaults) derivedType() modelv1.ResourceType {
	if d.hasOwnResources() {
		return modelv1.ResourceTypeCustom
	}
	return modelv1.ResourceTypeSmall
}

// isDerivedType reports whether resourceType can have been derived, and no client set it.
// It requires managedFields, because a wrong guess would change an object that should be
// refused.
func (d *defaults) isDerivedType() bool {
	switch d.spec.ResourceType {
	case modelv1.ResourceTypeSmall, modelv1.ResourceTypeCustom:
		return d.old != nil && d.owners.HasManagedFields() && !d.owners.IsSet("/spec/resourceType", equals(d.spec.ResourceType))
	}
	return false
}

const resourcesPointer = "/spec/resources"

// hasOwnResources reports whether a client set resources, or set them to {}.
func (d *defaults) hasOwnResources() bool {
	r := d.spec.Resources
	switch {
	case r == nil:
		return false
	case d.old == nil || d.owners.IsSet(resourcesPointer, nil):
		return true
	case len(r.Limits)+len(r.Requests) == 0 && !d.owners.HasManagedFields():
		return true
	}
	return len(r.Claims) > 0 || !d.allDerived("limits", r.Limits) || !d.allDerived("requests", r.Requests)
}

func (d *defaults) allDerived(list string, quantities corev1.ResourceList) bool {
	for name, value := range quantities {
		if !d.isDerivedQuantity(list, name, value) {
			return false
		}
	}
	return true
}

// isDerivedQuantity reports whether a quantity can have been set from a preset, and no
// client set it. Without managedFields, the resources as a whole must be those of the old
// object's preset.
func (d *defaults) isDerivedQuantity(list string, name corev1.ResourceName, value resource.Quantity) bool {
	switch {
	case d.old == nil || !inPresets(name, value):
		return false
	case d.owners.HasManagedFields():
		return !d.owners.IsSet(patch.Key(resourcesPointer+"/"+list, string(name)), equalsQuantity(value))
	}
	was := presetOf(d.old.ResourceType)
	return was != nil && was.matches(d.old.Resources) && was.matches(d.spec.Resources)
}

// equalsQuantity returns a function that reports whether a text of a manifest is a
// quantity equal to value.
func equalsQuantity(value resource.Quantity) func(string) bool {
	return func(text string) bool {
		q, err := quantity.Parse(text)
		return err == nil && q.Cmp(value) == 0
	}
}

// resources default to those of the preset, unless a client set some. Then only those
// that a client set remain, without values of an earlier preset. If resourceType becomes
// custom and no client set resources, the values of the preset remain: an editor shows
// them as if they were set, and an update with the same values has no effect.
func (d *defaults) resources() {
	preset := presetOf(d.spec.ResourceType)
	switch {
	case d.hasOwnResources():
		d.pruneStalePreset()
	case preset != nil && !preset.matches(d.spec.Resources):
		now, _ := Preset(preset.name)
		patch.SetEncoded(d.ops, resourcesPointer, &d.spec.Resources, &now, preset.encoded)
	}
}

// pruneStalePreset removes the values of a preset from resources that a client set.
func (d *defaults) pruneStalePreset() {
	d.pruneStalePresetFrom("limits", &d.spec.Resources.Limits)
	d.pruneStalePresetFrom("requests", &d.spec.Resources.Requests)
}

func (d *defaults) pruneStalePresetFrom(list string, quantities *corev1.ResourceList) {
	if d.old == nil || len(*quantities) == 0 {
		return
	}
	path := resourcesPointer + "/" + list
	for _, name := range [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if value, ok := (*quantities)[name]; ok && d.isDerivedQuantity(list, name, value) {
			patch.Unset(d.ops, patch.Key(path, string(name)), &value)
			delete(*quantities, name)
		}
	}
	if len(*quantities) == 0 && !d.owners.IsSet(path, nil) {
		patch.Unset(d.ops, path, quantities)
	}
}

func (d *defaults) probes() {
	var readiness, liveness *corev1.Probe
	if d.old != nil {
		readiness, liveness = d.old.ReadinessProbe, d.old.LivenessProbe
	}
	d.probe("/spec/readinessProbe", &d.spec.ReadinessProbe, readiness)
	d.probe("/spec/livenessProbe", &d.spec.LivenessProbe, liveness)
}

// probe sets the default of one probe. Only its action is derived: a probe without an
// action keeps its timing, and a probe that gets another action by an apply, which
// merges, loses the derived one.
func (d *defaults) probe(path string, probe **corev1.Probe, was *corev1.Probe) {
	port, hasDefault := probePort(d.spec)
	switch {
	case *probe == nil:
		if hasDefault {
			patch.Set(d.ops, path, probe, &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: tcpSocket(port)}})
		}
	case (*probe).ProbeHandler == corev1.ProbeHandler{}:
		switch {
		case hasDefault:
			patch.Set(d.ops, path+"/tcpSocket", &(*probe).TCPSocket, tcpSocket(port))
		case d.isEmptied(path, *probe):
			patch.Unset(d.ops, path, probe)
		}
	case d.isDerivedPort(path, *probe, was):
		hasDefault = hasDefault && !hasOtherAction(*probe) && !d.hasTCPSocket(path, (*probe).TCPSocket)
		if !hasDefault || !probesPort(*probe, port) {
			d.replaceAction(path, probe, port, hasDefault)
		}
	}
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
