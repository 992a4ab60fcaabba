// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
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
	now := d.derivedType()
	if now != d.spec.ResourceType && (d.spec.ResourceType == "" || d.changesPods()) {
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
// client set it. Without managedFields, CPU and memory as a whole must be those of the old
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
	return d.contradictsIn("limits", d.spec.Resources.Limits, preset) ||
		d.contradictsIn("requests", d.spec.Resources.Requests, preset)
}

func (d *defaults) contradictsIn(list string, quantities corev1.ResourceList, preset *preset) bool {
	for _, name := range inPreset {
		value, ok := quantities[name]
		if ok && value.Cmp(preset.quantity(name)) != 0 && !d.isDerivedQuantity(list, name, value) {
			return true
		}
	}
	return false
}

// complete sets CPU and memory to those of the preset, beside what clients set.
func (d *defaults) complete(preset *preset) {
	d.completeIn("limits", &d.spec.Resources.Limits, preset)
	d.completeIn("requests", &d.spec.Resources.Requests, preset)
}

// completeIn sets an empty list as a whole, because it may be null in the request.
func (d *defaults) completeIn(list string, quantities *corev1.ResourceList, preset *preset) {
	path := resourcesPointer + "/" + list
	if len(*quantities) == 0 {
		patch.Set(d.ops, path, quantities, preset.list())
		return
	}
	for _, name := range inPreset {
		now := preset.quantity(name)
		value, ok := (*quantities)[name]
		if !ok || value.Cmp(now) != 0 && d.changesPods() {
			patch.Set(d.ops, patch.Key(path, string(name)), &value, now)
			(*quantities)[name] = value
		}
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
	for _, name := range inPreset {
		if value, ok := (*quantities)[name]; ok && d.isDerivedQuantity(list, name, value) && d.changesPods() {
			patch.Unset(d.ops, patch.Key(path, string(name)), &value)
			delete(*quantities, name)
		}
	}
	if len(*quantities) == 0 && !d.owners.IsSet(path, nil) {
		patch.Unset(d.ops, path, quantities)
	}
}

// preset is the resources of a resource type. Requests equal limits, so that the pods
// have the quality of service class Guaranteed.
type preset struct {
	name        modelv1.ResourceType
	cpu, memory resource.Quantity
}

var presets = [...]preset{
	newPreset(modelv1.ResourceTypeSmall, "1", "2Gi"),
	newPreset(modelv1.ResourceTypeMedium, "2", "4Gi"),
	newPreset(modelv1.ResourceTypeLarge, "4", "8Gi"),
}

func newPreset(name modelv1.ResourceType, cpu, memory string) preset {
	return preset{name, resource.MustParse(cpu), resource.MustParse(memory)}
}

// Preset returns a new copy of the resources of a resource type, and false if the type
// has no preset.
func Preset(name modelv1.ResourceType) (corev1.ResourceRequirements, bool) {
	p := presetOf(name)
	if p == nil {
		return corev1.ResourceRequirements{}, false
	}
	return corev1.ResourceRequirements{Limits: p.list(), Requests: p.list()}, true
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

func (p *preset) list() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: p.cpu, corev1.ResourceMemory: p.memory}
}

// inPreset are the resources that a preset defines. All others are the client's.
var inPreset = [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// quantity returns the preset's quantity of one of inPreset.
func (p *preset) quantity(name corev1.ResourceName) resource.Quantity {
	if name == corev1.ResourceCPU {
		return p.cpu
	}
	return p.memory
}

// matches reports whether CPU and memory are equal to those of the preset, in any notation.
func (p *preset) matches(r *corev1.ResourceRequirements) bool {
	return r != nil && p.matchesList(r.Limits) && p.matchesList(r.Requests)
}

func (p *preset) matchesList(list corev1.ResourceList) bool {
	cpu, hasCPU := list[corev1.ResourceCPU]
	memory, hasMemory := list[corev1.ResourceMemory]
	return hasCPU && hasMemory && cpu.Cmp(p.cpu) == 0 && memory.Cmp(p.memory) == 0
}

// differs reports whether a CPU or a memory is set, and is not equal to that of the preset.
func (p *preset) differs(r *corev1.ResourceRequirements) bool {
	return r != nil && (p.differsIn(r.Limits) || p.differsIn(r.Requests))
}

func (p *preset) differsIn(list corev1.ResourceList) bool {
	for _, name := range inPreset {
		if value, ok := list[name]; ok && value.Cmp(p.quantity(name)) != 0 {
			return true
		}
	}
	return false
}

// inPresets reports whether a preset has this quantity of a resource.
func inPresets(name corev1.ResourceName, value resource.Quantity) bool {
	for i := range presets {
		switch p := &presets[i]; name {
		case corev1.ResourceCPU:
			if value.Cmp(p.cpu) == 0 {
				return true
			}
		case corev1.ResourceMemory:
			if value.Cmp(p.memory) == 0 {
				return true
			}
		}
	}
	return false
}

// String describes the preset. It has a copy as its receiver, because a Quantity caches
// its text, and presets are read concurrently.
func (p preset) String() string {
	return p.cpu.String() + " CPU and " + p.memory.String()
}
