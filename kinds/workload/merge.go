// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// takeUnmergeable removes from the tree of a pod template what may not be merged over the generated
// one, and returns its errors: fields of the main container that have a field of their own in the
// object, and items of merged lists without their key, or with that of an earlier one. Empty values
// of such fields are removed without an error: they mean "not set", and some would replace.
func (p *Pods) takeUnmergeable(tree, generated map[string]any) field.ErrorList {
	pod, _ := tree["spec"].(map[string]any)
	ownPod := generated["spec"].(map[string]any)
	own := items(ownPod["containers"])[0]
	at := root.Child("spec")
	errs := p.takeReserved(at, pod, ownPod, podFields)
	for i, c := range items(pod["containers"]) {
		if c["name"] == p.name() {
			errs = append(errs, p.takeReserved(at.Child("containers").Index(i), c, own, p.Reserved)...)
			errs = append(errs, takeUnkeyed(at.Child("containers").Index(i), c, "volumeMounts", "mountPath")...)
		}
	}
	for i, c := range items(pod["initContainers"]) {
		if c["name"] == models.Container && len(p.Models) > 0 {
			errs = append(errs, takeUnkeyed(at.Child("initContainers").Index(i), c, "volumeMounts", "mountPath")...)
		}
	}
	for _, list := range [...]string{"containers", "initContainers", "volumes"} {
		errs = append(errs, takeUnkeyed(at, pod, list, "name")...)
	}
	return rules.MarkUnbuildable(errs...)
}

// takeReserved removes the fields of a list from an object of the pod template. own is the
// generated one.
func (p *Pods) takeReserved(at *field.Path, c, own map[string]any, list []Reserved) field.ErrorList {
	var errs field.ErrorList
	for _, reserved := range list {
		value, ok := c[reserved.Field]
		switch {
		case !ok || p.adopted() && reserved.Field == portsField:
			continue
		case reserved.Either && isEmpty(own[reserved.Field]):
			continue // The value of the template is the only one.
		case isEmpty(value):
		case !reserved.Either:
			errs = append(errs, field.Forbidden(at.Child(reserved.Field), "may not be set on the main container; use "+reserved.Instead))
		default:
			errs = append(errs, inBoth(at.Child(reserved.Field), reserved.Instead))
		}
		delete(c, reserved.Field)
	}
	return errs
}

// takeUnkeyed removes the items of a list without a key, or with that of an earlier one.
func takeUnkeyed(at *field.Path, of map[string]any, list, key string) field.ErrorList {
	var errs field.ErrorList
	var seen []any
	all, _ := of[list].([]any)
	kept := make([]any, 0, len(all))
	for i, item := range all {
		object, _ := item.(map[string]any)
		value, path := object[key], at.Child(list).Index(i).Child(key)
		switch {
		case isEmpty(value):
			errs = append(errs, field.Required(path, ""))
		case slices.Contains(seen, value):
			errs = append(errs, field.Duplicate(path, value))
		default:
			seen, kept = append(seen, value), append(kept, item)
		}
	}
	if len(errs) > 0 {
		of[list] = kept
	}
	return errs
}

// items returns the objects of a list, nil for any other value.
func items(list any) []map[string]any {
	values, _ := list.([]any)
	objects := make([]map[string]any, len(values))
	for i := range values {
		objects[i], _ = values[i].(map[string]any)
	}
	return objects
}

// isEmpty reports whether a value of a pod template says nothing.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		for _, member := range value {
			if !isEmpty(member) {
				return false
			}
		}
		return true
	}
	return false
}
