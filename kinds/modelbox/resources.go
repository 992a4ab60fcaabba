// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// resourceType defaults to custom if resources are set, and to small otherwise.
func (d *defaults) resourceType() {
	switch {
	case d.spec.ResourceType != "":
	case d.spec.Resources != nil:
		d.spec.ResourceType = modelv1.ResourceTypeCustom
	default:
		d.spec.ResourceType = modelv1.ResourceTypeSmall
	}
}

func both(r *corev1.ResourceRequirements) [2]*corev1.ResourceList {
	return [2]*corev1.ResourceList{&r.Limits, &r.Requests}
}

// resources default to those of the preset, CPU and memory quantity by quantity: other
// resources, and claims, may be set beside them. If a client set another CPU or memory, only what
// clients set remains.
func (d *defaults) resources() {
	preset := presetOf(d.spec.ResourceType)
	if preset == nil || preset.differs(d.spec.Resources) {
		return
	}
	d.spec.Resources = cmp.Or(d.spec.Resources, &corev1.ResourceRequirements{})
	for _, list := range both(d.spec.Resources) {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		for name, quantity := range preset.list {
			if _, set := (*list)[name]; !set {
				(*list)[name] = quantity
			}
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

// matches reports whether CPU and memory are set, and equal to those of the preset.
func (p *preset) matches(r *corev1.ResourceRequirements) bool {
	if r == nil || p.differs(r) {
		return false
	}
	for name := range p.list {
		_, limited := r.Limits[name]
		if _, requested := r.Requests[name]; !limited || !requested {
			return false
		}
	}
	return true
}

// differs reports whether a CPU or a memory is set, and is not equal to that of the preset, in any notation. All other
// resources are the client's.
func (p *preset) differs(r *corev1.ResourceRequirements) bool {
	if r == nil {
		return false
	}
	for name, of := range p.list {
		for _, list := range both(r) {
			if value, set := (*list)[name]; set && value.Cmp(of) != 0 {
				return true
			}
		}
	}
	return false
}

// inPresets reports whether a preset has the value of a resource.
func inPresets(name string, value any) bool {
	return slices.ContainsFunc(presets[:], func(p preset) bool {
		of, ok := p.list[corev1.ResourceName(name)]
		return ok && same(resourcesPointer, of.String(), value)
	})
}

// String describes the preset. Cpu and Memory return copies, because a Quantity caches its text,
// and presets are read concurrently.
func (p *preset) String() string {
	return p.list.Cpu().String() + " CPU and " + p.list.Memory().String()
}
