// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/api"
)

// Main is what the operator's own rules of a pod template need to know of the main
// container.
type Main struct {
	// Name of the container. Empty if it is not known yet.
	Name string
	// Reserved are its fields that have a field of their own in the object.
	Reserved []Reserved
	// AppName and Instance are the pods' api.LabelName and api.LabelInstance.
	AppName, Instance string
}

// Reserved is a field of the main container that is written elsewhere.
type Reserved struct {
	// Field of the container, as JSON has it.
	Field string
	// Instead is where to write it, such as spec.image.
	Instead string
}

// Template judges a pod template by the operator's own rules: those on what is merged
// over the generated template, on images, and on lists whose keys server-side apply wants
// to be unique. All else that Kubernetes wants of pods is for package podrules to say. A
// nil template is not judged.
func Template(template *corev1.PodTemplateSpec, main Main) field.ErrorList {
	if template == nil {
		return nil
	}
	meta, spec := podTemplate.Child("metadata"), podTemplate.Child("spec")
	errs := ownLabels(meta.Child("labels"), template.Labels, main)
	errs = append(errs, metaKeys(meta, &template.ObjectMeta)...)
	errs = append(errs, podKeys(spec, &template.Spec)...)
	for i := range template.Spec.Containers {
		at, c := spec.Child("containers").Index(i), &template.Spec.Containers[i]
		if c.Name != "" && c.Name == main.Name {
			errs = append(errs, main.container(at, c)...)
		} else {
			errs = append(errs, otherContainer(at, c)...)
		}
	}
	for i := range template.Spec.InitContainers {
		errs = append(errs, otherContainer(spec.Child("initContainers").Index(i), &template.Spec.InitContainers[i])...)
	}
	return errs
}

// ownLabels refuses other values for the labels that the operator sets.
func ownLabels(path *field.Path, written map[string]string, main Main) field.ErrorList {
	ours := map[string]string{api.LabelName: main.AppName, api.LabelInstance: main.Instance, api.LabelManagedBy: api.ManagedBy}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		if value, ok := written[key]; ok && value != ours[key] {
			errs = append(errs, Ambiguous(field.Invalid(path.Key(key), value,
				"the operator sets this label, and selectors depend on it: remove it")))
		}
	}
	return errs
}

// metaKeys is podKeys for the metadata of the template.
func metaKeys(path *field.Path, meta *metav1.ObjectMeta) field.ErrorList {
	var errs field.ErrorList
	repeats(meta.Finalizers, func(name *string) string { return *name }, func(i int) {
		errs = append(errs, field.Duplicate(path.Child("finalizers").Index(i), meta.Finalizers[i]))
	})
	repeats(meta.OwnerReferences, func(o *metav1.OwnerReference) types.UID { return o.UID }, func(i int) {
		errs = append(errs, field.Duplicate(path.Child("ownerReferences").Index(i).Child("uid"), meta.OwnerReferences[i].UID))
	})
	return errs
}

// podKeys refuses lists in which a key is there twice, although Kubernetes lets them be:
// the API server creates a child with such a list, and answers every later server-side
// apply of it with an error.
func podKeys(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	errs := unique(path.Child("hostAliases"), "ip", spec.HostAliases, func(a *corev1.HostAlias) string { return a.IP })
	// Here an empty name is a key like any other.
	repeats(spec.ImagePullSecrets, func(s *corev1.LocalObjectReference) string { return s.Name }, func(i int) {
		errs = append(errs, field.Duplicate(path.Child("imagePullSecrets").Index(i).Child("name"), spec.ImagePullSecrets[i].Name))
	})
	return errs
}

// containerKeys is podKeys for a container.
func containerKeys(path *field.Path, c *corev1.Container) field.ErrorList {
	var errs field.ErrorList
	repeats(c.Ports, numberAndProtocol, func(i int) {
		errs = append(errs, field.Duplicate(path.Child("ports").Index(i).Child("containerPort"), c.Ports[i].ContainerPort))
	})
	errs = append(errs, uniqueEnv(path.Child("env"), c.Env)...)
	return append(errs, uniqueClaims(path.Child("resources"), c.Resources.Claims)...)
}

func otherContainer(path *field.Path, c *corev1.Container) field.ErrorList {
	var errs field.ErrorList
	if c.Image != "" {
		errs = Image(path.Child("image"), c.Image)
	}
	return append(errs, containerKeys(path, c)...)
}

// container judges what is added to the main container. Its reserved fields are taken
// out first: one error says that they are not written here.
func (main Main) container(path *field.Path, c *corev1.Container) field.ErrorList {
	rest := *c
	var errs field.ErrorList
	for _, reserved := range main.Reserved {
		if take(&rest, reserved.Field) {
			errs = append(errs, Ambiguous(field.Forbidden(path.Child(reserved.Field), "of the main container is written in "+reserved.Instead)))
		}
	}
	return append(errs, containerKeys(path, &rest)...)
}

// take clears a field of a container and says whether it was set.
func take(c *corev1.Container, name string) bool {
	before := *c
	switch name {
	case "image":
		c.Image = ""
		return before.Image != ""
	case "resources":
		c.Resources = corev1.ResourceRequirements{}
		return len(before.Resources.Limits)+len(before.Resources.Requests)+len(before.Resources.Claims) > 0
	case "ports":
		c.Ports = nil
		return len(before.Ports) > 0
	case "env":
		c.Env = nil
		return len(before.Env) > 0
	case "envFrom":
		c.EnvFrom = nil
		return len(before.EnvFrom) > 0
	}
	return takeProbe(c, name)
}

func takeProbe(c *corev1.Container, name string) bool {
	before := *c
	switch name {
	case "readinessProbe":
		c.ReadinessProbe = nil
		return before.ReadinessProbe != nil
	case "livenessProbe":
		c.LivenessProbe = nil
		return before.LivenessProbe != nil
	case "startupProbe":
		c.StartupProbe = nil
		return before.StartupProbe != nil
	}
	return false
}
