// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/podvalidation"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// mainContainer returns the errors of what is added to the main container. Its reserved
// fields get one error each, and are not validated, unless they may be set in either place.
func (owner *Owner) mainContainer(at *field.Path, c *corev1.Container) field.ErrorList {
	rest := *c
	var errs field.ErrorList
	for _, reserved := range owner.Main.Reserved {
		own := at.Child(reserved.Field)
		switch {
		case reserved.Either && owner.inBoth(c, reserved):
			errs = append(errs, inBoth(own, reserved.Instead))
		case !reserved.Either && take(&rest, reserved.Field):
			errs = append(errs, field.Forbidden(own, "may not be set on the main container; use "+reserved.Instead))
		}
	}
	errs = append(errs, owner.mountsOverOwn(at.Child("volumeMounts"), c)...)
	return append(rules.MarkUnbuildable(errs...), containerKeys(at, &rest)...)
}

// inBoth reports whether a field is set in the pod template and in the object's own field. An
// empty envFrom counts as set: in the strategic merge it would replace spec.envFrom.
func (owner *Owner) inBoth(c *corev1.Container, f podvalidation.ReservedField) bool {
	return f.In(&owner.Main.Container) && (f.In(c) || f.Field == "envFrom" && c.EnvFrom != nil)
}

// inBoth returns the error of a field of the pod template that is set in the object's own
// field as well.
func inBoth(path *field.Path, own string) *field.Error {
	return field.Forbidden(path, "may be set in one place only: remove it here, or remove "+own)
}

// podFields returns the errors of the pod's fields that the object's own fields set as well.
func (owner *Owner) podFields(path *field.Path, pod *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	if len(pod.ImagePullSecrets) > 0 && len(owner.ImagePullSecrets) > 0 {
		errs = append(errs, inBoth(path.Child("imagePullSecrets"), "spec.imagePullSecrets"))
	}
	if pod.TerminationGracePeriodSeconds != nil && owner.Main.TerminationGracePeriodSeconds != nil {
		errs = append(errs, inBoth(path.Child("terminationGracePeriodSeconds"), "spec.terminationGracePeriodSeconds"))
	}
	for i := range owner.Main.Volumes {
		own := &owner.Main.Volumes[i]
		for at := range pod.Volumes {
			if pod.Volumes[at].Name == own.Volume.Name {
				errs = append(errs, field.Forbidden(path.Child("volumes").Index(at).Child("name"),
					own.Volume.Name+" is the volume of "+own.Field+"; use another name, or remove "+own.Field))
			}
		}
	}
	return rules.MarkUnbuildable(errs...)
}

// mountsOverOwn refuses mounts of the main container at the path of a volume that the object's
// own fields define. Kubernetes refuses only those with the same text.
func (owner *Owner) mountsOverOwn(list *field.Path, c *corev1.Container) field.ErrorList {
	var errs field.ErrorList
	for i := range owner.Main.Volumes {
		own := &owner.Main.Volumes[i]
		for at := range c.VolumeMounts {
			if path.Clean(c.VolumeMounts[at].MountPath) == path.Clean(own.Mount.MountPath) {
				errs = append(errs, field.Forbidden(list.Index(at).Child("mountPath"),
					own.Field+" is mounted at "+own.Mount.MountPath+"; remove this mount, or remove "+own.Field))
			}
		}
	}
	return errs
}

// ownInitContainer returns the errors of what is added to an init container that the object's
// own fields define: it may have more environment variables and mounts, and other resources and
// another security context, and nothing else.
func (owner *Owner) ownInitContainer(at *field.Path, c *corev1.Container) field.ErrorList {
	rest := *c
	rest.Name, rest.Env, rest.VolumeMounts, rest.SecurityContext = "", nil, nil, nil
	rest.Resources.Limits, rest.Resources.Requests = nil, nil
	var errs field.ErrorList
	if !equality.Semantic.DeepEqual(rest, corev1.Container{}) {
		errs = rules.MarkUnbuildable(field.Forbidden(at, c.Name+" is the init container of spec.model, of which only env, "+
			"volumeMounts, securityContext, resources.limits and resources.requests may be set; remove the other fields, or use another name"))
	}
	return append(errs, containerKeys(at, c)...)
}

func (owner *Owner) isOwnInitContainer(name string) bool {
	named := func(c corev1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(owner.Main.InitContainers, named)
}

// take clears a field of a container and reports whether it was set.
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
