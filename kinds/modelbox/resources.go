// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// resourceType defaults to custom if resources are set, and to small otherwise.
func (d *defaults) resourceType() {
	if d.spec.ResourceType != "" && !d.isDerivedType() {
		return
	}
	now := modelv1.ResourceTypeSmall
	if d.hasOwnResources() {
		now = modelv1.ResourceTypeCustom
	}
	if now != d.spec.ResourceType && (d.spec.ResourceType == "" || d.changesPods()) {
		patch.Set(d.ops, "/spec/resourceType", &d.spec.ResourceType, now)
	}
}

// isDerivedType reports whether resourceType can have been derived, and no client set it.
// It requires managedFields, because a wrong guess would change an object that should be
// refused.
func (d *defaults) isDerivedType() bool {
	is := d.spec.ResourceType
	return (is == modelv1.ResourceTypeSmall || is == modelv1.ResourceTypeCustom) &&
		d.old != nil && d.owners.HasManagedFields() && !d.owners.IsSet("/spec/resourceType", equals(is))
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
	return len(r.Claims) > 0 || !d.allDerived(r)
}

func (d *defaults) allDerived(r *corev1.ResourceRequirements) bool {
	for _, in := range both(r) {
		for name, value := range *in.list {
			if !d.isDerivedQuantity(in.pointer, name, value) {
				return false
			}
		}
	}
	return true
}

// quantities are the limits or the requests of a container, with their JSON pointer.
type quantities struct {
	pointer string
	list    *corev1.ResourceList
}

func both(r *corev1.ResourceRequirements) [2]quantities {
	return [2]quantities{{resourcesPointer + "/limits", &r.Limits}, {resourcesPointer + "/requests", &r.Requests}}
}

// isDerivedQuantity reports whether a quantity can have been set from a preset, and no
// client set it. Without managedFields, CPU and memory as a whole must be those of the old
// object's preset.
func (d *defaults) isDerivedQuantity(pointer string, name corev1.ResourceName, value resource.Quantity) bool {
	switch {
	case d.old == nil || !inPresets(name, value):
		return false
	case d.owners.HasManagedFields():
		return !d.owners.IsSet(patch.Key(pointer, string(name)), equalsQuantity(value))
	}
	was := presetOf(d.old.ResourceType)
	return was != nil && was.matches(d.old.Resources) && was.matches(d.spec.Resources)
}

// equalsQuantity returns a function that reports whether a text of a manifest is a
// quantity equal to value.
func equalsQuantity(value resource.Quantity) func(string) bool {
	return func(text string) bool {
		q, err := rules.ParseQuantity(text)
		return err == nil && q.Cmp(value) == 0
	}
}

// resources default to those of the preset, CPU and memory quantity by quantity: other
// resources, and claims, may be set beside them. If a client set another CPU or memory, or if
// resourceType is custom, only what clients set remains, without values of an earlier preset.
// If resourceType becomes custom and no client set resources, the values of the preset remain:
// an editor shows them as if they were set, and an update with the same values has no effect.
func (d *defaults) resources() {
	preset := presetOf(d.spec.ResourceType)
	switch {
	case preset != nil && preset.matches(d.spec.Resources):
	case d.hasOwnResources():
		if preset != nil && !d.contradicts(preset) {
			d.complete(preset)
		} else {
			d.pruneStalePreset()
		}
	case preset != nil && (!preset.differs(d.spec.Resources) || d.changesPods()):
		now, _ := Preset(preset.name)
		patch.Set(d.ops, resourcesPointer, &d.spec.Resources, &now)
	}
}

// contradicts reports whether a client set a CPU or a memory that is not that of the preset.
func (d *defaults) contradicts(preset *preset) bool {
	return !preset.every(d.spec.Resources, func(in quantities, name corev1.ResourceName, differs bool) bool {
		return !differs || d.isDerivedQuantity(in.pointer, name, (*in.list)[name])
	})
}

// complete sets CPU and memory to those of the preset, beside what clients set. It sets an empty
// list as a whole, because it may be null in the request.
func (d *defaults) complete(preset *preset) {
	for _, in := range both(d.spec.Resources) {
		if len(*in.list) == 0 {
			patch.Set(d.ops, in.pointer, in.list, maps.Clone(preset.list))
			continue
		}
		for _, name := range inPreset {
			now := preset.list[name]
			value, ok := (*in.list)[name]
			if !ok || value.Cmp(now) != 0 && d.changesPods() {
				patch.Set(d.ops, patch.Key(in.pointer, string(name)), &value, now)
				(*in.list)[name] = value
			}
		}
	}
}

// pruneStalePreset removes the values of a preset from resources that a client set.
func (d *defaults) pruneStalePreset() {
	for _, in := range both(d.spec.Resources) {
		if d.old == nil || len(*in.list) == 0 {
			continue
		}
		for _, name := range inPreset {
			if value, ok := (*in.list)[name]; ok && d.isDerivedQuantity(in.pointer, name, value) && d.changesPods() {
				patch.Unset(d.ops, patch.Key(in.pointer, string(name)), &value)
				delete(*in.list, name)
			}
		}
		if len(*in.list) == 0 && !d.owners.IsSet(in.pointer, nil) {
			patch.Unset(d.ops, in.pointer, in.list)
		}
	}
}

// preset is the resources of a resource type. Requests equal limits, so that the pods
// have the quality of service class Guaranteed.
type preset struct {
	name modelv1.ResourceType
	list corev1.ResourceList
}

var presets = [...]preset{
	newPreset(modelv1.ResourceTypeSmall, "1", "2Gi"),
	newPreset(modelv1.ResourceTypeMedium, "2", "4Gi"),
	newPreset(modelv1.ResourceTypeLarge, "4", "8Gi"),
}

func newPreset(name modelv1.ResourceType, cpu, memory string) preset {
	return preset{name, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}
}

// Preset returns a new copy of the resources of a resource type, and false if the type
// has no preset.
func Preset(name modelv1.ResourceType) (corev1.ResourceRequirements, bool) {
	p := presetOf(name)
	if p == nil {
		return corev1.ResourceRequirements{}, false
	}
	return corev1.ResourceRequirements{Limits: maps.Clone(p.list), Requests: maps.Clone(p.list)}, true
}

// presetOf returns nil for custom and for an unknown resource type.
func presetOf(name modelv1.ResourceType) *preset {
	for i := range presets {
		if presets[i].name == name {
			return &presets[i]
		}
	}
	return nil
}

// inPreset are the resources that a preset defines. All others are the client's.
var inPreset = [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// every reports whether holds is true for CPU and memory of both lists. differs is true for one
// that is set, and is not equal to that of the preset, in any notation.
func (p *preset) every(r *corev1.ResourceRequirements, holds func(in quantities, name corev1.ResourceName, differs bool) bool) bool {
	for _, in := range both(r) {
		for _, name := range inPreset {
			value, isSet := (*in.list)[name]
			if !holds(in, name, isSet && value.Cmp(p.list[name]) != 0) {
				return false
			}
		}
	}
	return true
}

// matches reports whether CPU and memory are set, and equal to those of the preset.
func (p *preset) matches(r *corev1.ResourceRequirements) bool {
	return r != nil && p.every(r, func(in quantities, name corev1.ResourceName, differs bool) bool {
		_, isSet := (*in.list)[name]
		return isSet && !differs
	})
}

// differs reports whether a CPU or a memory is set, and is not equal to that of the preset.
func (p *preset) differs(r *corev1.ResourceRequirements) bool {
	return r != nil && !p.every(r, func(_ quantities, _ corev1.ResourceName, differs bool) bool { return !differs })
}

// inPresets reports whether a preset has this quantity of a resource.
func inPresets(name corev1.ResourceName, value resource.Quantity) bool {
	return slices.ContainsFunc(presets[:], func(p preset) bool {
		of, ok := p.list[name]
		return ok && value.Cmp(of) == 0
	})
}

// String describes the preset. Cpu and Memory return copies, because a Quantity caches its text,
// and presets are read concurrently.
func (p *preset) String() string {
	return p.list.Cpu().String() + " CPU and " + p.list.Memory().String()
}
