// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	corev1 "k8s.io/api/core/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
)

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
		patch.SetEncoded(d.ops, "/spec/resources", &d.spec.Resources, &now, preset.encoded)
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
	left := was.list()
	for _, resource := range [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		have, ok := (*list)[resource]
		if ok && have.Cmp(left[resource]) == 0 && !d.owners.Typed("spec", "resources", name, string(resource)) {
			patch.Unset(d.ops, patch.Key(path, string(resource)), &have)
			delete(*list, resource)
		}
	}
	if *list != nil && len(*list) == 0 && !d.owners.Typed("spec", "resources", name) {
		patch.Unset(d.ops, path, list)
	}
}
