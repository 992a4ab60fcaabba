// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

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

// hasOthers reports whether resources have more than a preset defines.
func hasOthers(r *corev1.ResourceRequirements) bool {
	return len(r.Claims) > 0 || len(r.Limits) > len(inPreset) || len(r.Requests) > len(inPreset)
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
