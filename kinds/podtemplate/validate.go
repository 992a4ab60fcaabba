// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podtemplate decodes and validates spec.podTemplate: the operator's own rules on it
// are here, and those of Kubernetes in package podvalidation.
package podtemplate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/kinds/podvalidation"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The paths are those of every kind that has a pod template.
var (
	spec          = field.NewPath("spec")
	root          = spec.Child("podTemplate")
	imagePath     = spec.Child("image")
	portsPath     = spec.Child("ports")
	resourcesPath = spec.Child("resources")
	envsPath      = spec.Child("envs")
)

// Owner is what the rules need to know of the object that has the pod template.
type Owner struct {
	// AppName and Instance are the pods' api.LabelName and api.LabelInstance.
	AppName, Instance string
	// Main is the main container as the object's own fields define it.
	Main podvalidation.MainContainer
	// ImagePullSecrets are those of the pods as the object's own field defines them.
	ImagePullSecrets []corev1.LocalObjectReference
}

// Validate decodes spec.podTemplate and returns its errors, and those of the object's own
// fields that refer to it, after errs, which are the errors of the object's other fields.
func Validate(raw *runtime.RawExtension, owner *Owner, errs field.ErrorList) field.ErrorList {
	template, undecoded := Decode(raw)
	errs = append(errs, undecoded...)
	if template == nil && len(undecoded) > 0 {
		return errs // What refers to the template cannot be validated.
	}
	main := &owner.Main
	errs = append(errs, ports.ValidateTargets(portsPath, main.ServicePorts, main.Container.Ports, template)...)
	errs = append(errs, rules.Claims(resourcesPath, &main.Container.Resources, template)...)
	errs = append(errs, rules.FileKeys(envsPath, main.Container.Env, template)...)
	if template == nil {
		return errs
	}
	if err := tooLarge(raw.Raw, &template.Spec); err != nil {
		return append(errs, err) // And not validated any further, which could cost too much.
	}
	if errs = append(errs, owner.validate(template)...); len(errs) >= rules.MaxErrors {
		return errs // A response has no room for those of Kubernetes, which may be thousands.
	}
	return append(errs, podvalidation.Validate(template, main, errs)...)
}

// validate returns the errors of a pod template by the operator's own rules: those on
// what is merged over the generated template, on images, and on lists whose keys server-side
// apply requires to be unique. Kubernetes' rules for pods are in package podvalidation.
func (owner *Owner) validate(template *corev1.PodTemplateSpec) field.ErrorList {
	meta, spec := root.Child("metadata"), root.Child("spec")
	errs := owner.labels(meta.Child("labels"), template.Labels)
	errs = append(errs, metaKeys(meta, &template.ObjectMeta)...)
	errs = append(errs, owner.podFields(spec, &template.Spec)...)
	errs = append(errs, podKeys(spec, &template.Spec)...)
	for i := range template.Spec.Containers {
		at, c := spec.Child("containers").Index(i), &template.Spec.Containers[i]
		if c.Name != "" && c.Name == owner.Main.Container.Name {
			errs = append(errs, owner.mainContainer(at, c)...)
		} else {
			errs = append(errs, otherContainer(at, c)...)
		}
	}
	for i := range template.Spec.InitContainers {
		at, c := spec.Child("initContainers").Index(i), &template.Spec.InitContainers[i]
		if owner.isOwnInitContainer(c.Name) {
			errs = append(errs, owner.ownInitContainer(at, c)...)
		} else {
			errs = append(errs, otherContainer(at, c)...)
		}
	}
	return errs
}

// MaxContainers is the maximum number of containers of a pod, those that run before the
// others included. To validate one takes more time than to validate any other item.
const MaxContainers = 128

// tooLarge returns the error of a template that is above one of the bounds.
func tooLarge(raw []byte, pod *corev1.PodSpec) *field.Error {
	if err := rules.SizeOf(root, raw); err != nil {
		return err
	}
	n := len(pod.Containers) + len(pod.InitContainers) + len(pod.EphemeralContainers)
	if n <= MaxContainers {
		return nil
	}
	return field.TooMany(root.Child("spec", "containers"), n, MaxContainers)
}

// labels refuses other values for the labels that the operator sets.
func (owner *Owner) labels(path *field.Path, written map[string]string) field.ErrorList {
	ours := map[string]string{api.LabelName: owner.AppName, api.LabelInstance: owner.Instance, api.LabelManagedBy: api.ManagedBy}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		if value, ok := written[key]; ok && value != ours[key] {
			errs = append(errs, field.Invalid(path.Key(key), value,
				"may not differ from the operator's value, because selectors use this label; remove it"))
		}
	}
	return rules.MarkUnbuildable(errs...)
}

func otherContainer(path *field.Path, c *corev1.Container) field.ErrorList {
	var errs field.ErrorList
	if c.Image != "" {
		errs = rules.Image(path.Child("image"), c.Image)
	}
	return append(errs, containerKeys(path, c)...)
}
