// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// preset is a size that has a name. Requests equal limits, so that a pod's quality
// of service does not depend on its neighbours.
type preset struct {
	name        modelv1.ResourceType
	cpu, memory resource.Quantity
	// encoded is the JSON of the resources, which nearly every admission needs.
	encoded string
}

var presets = [...]preset{
	newPreset(modelv1.ResourceTypeSmall, "1", "2Gi"),
	newPreset(modelv1.ResourceTypeMedium, "2", "4Gi"),
	newPreset(modelv1.ResourceTypeLarge, "4", "8Gi"),
}

func newPreset(name modelv1.ResourceType, cpu, memory string) preset {
	list := fmt.Sprintf(`{"cpu":%q,"memory":%q}`, cpu, memory)
	return preset{name, resource.MustParse(cpu), resource.MustParse(memory), `{"limits":` + list + `,"requests":` + list + `}`}
}

// Preset is the resources of a resource type, made anew for each caller, and false
// if the type has none of its own.
func Preset(name modelv1.ResourceType) (corev1.ResourceRequirements, bool) {
	p := presetOf(name)
	if p == nil {
		return corev1.ResourceRequirements{}, false
	}
	return corev1.ResourceRequirements{Limits: p.list(), Requests: p.list()}, true
}

// presetOf is nil for custom, and for what is no resource type.
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

// is says whether resources are those of the preset, however they are written.
func (p *preset) is(r *corev1.ResourceRequirements) bool {
	return r != nil && len(r.Claims) == 0 && p.isList(r.Limits) && p.isList(r.Requests)
}

func (p *preset) isList(list corev1.ResourceList) bool {
	cpu, hasCPU := list[corev1.ResourceCPU]
	memory, hasMemory := list[corev1.ResourceMemory]
	return len(list) == 2 && hasCPU && hasMemory && cpu.Cmp(p.cpu) == 0 && memory.Cmp(p.memory) == 0
}

// inPresets says whether a quantity is the one that a preset has of a resource.
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

// String is the preset in words. It works on a copy: a Quantity keeps what it was
// written as, and the presets are read by many at once.
func (p preset) String() string {
	return p.cpu.String() + " CPU and " + p.memory.String()
}
