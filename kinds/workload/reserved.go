// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// podFields are the fields of a pod that have a field of their own in the object.
var podFields = []Reserved{
	{Field: "imagePullSecrets", Instead: "spec.imagePullSecrets", Either: true},
	{Field: "terminationGracePeriodSeconds", Instead: "spec.terminationGracePeriodSeconds", Either: true},
	{Field: "nodeSelector", Instead: "spec.scheduling.nodeSelector", Either: true},
	{Field: "tolerations", Instead: "spec.scheduling.tolerations", Either: true},
	{Field: "runtimeClassName", Instead: "spec.scheduling.runtimeClassName", Either: true},
	{Field: "priorityClassName", Instead: "spec.scheduling.priorityClassName", Either: true},
	{Field: "schedulerName", Instead: "spec.scheduling.schedulerName", Either: true},
}

// reserved returns the errors of what the template may not set because the object's own fields
// define it, those of fields aside (see takeUnmergeable), and of images that
// Kubernetes accepts and no container runtime does.
func (p *Pods) reserved(over *corev1.PodTemplateSpec, model *models.Pod) field.ErrorList {
	own := p.volumes(model)
	errs := p.labels(labelsPath, over.Labels)
	errs = append(errs, rules.MarkUnbuildable(volumesOfOwn(&over.Spec, own)...)...)
	for at, c := range containers(&over.Spec) {
		switch {
		case c.Name == p.name():
			errs = append(errs, rules.MarkUnbuildable(mountsOverOwn(at.Child("volumeMounts"), c, own)...)...)
		case model != nil && model.Fetch != nil && c.Name == model.Fetch.Name:
			errs = append(errs, rules.MarkUnbuildable(ownInitContainer(at, c)...)...)
		case c.Image != "":
			errs = append(errs, rules.Image(at.Child("image"), c.Image)...)
		}
	}
	return errs
}

// volumesOfOwn refuses volumes with the name of one that the object's own fields define.
func volumesOfOwn(pod *corev1.PodSpec, own []rules.OwnVolume) field.ErrorList {
	var errs field.ErrorList
	for i := range pod.Volumes {
		name := pod.Volumes[i].Name
		if j := slices.IndexFunc(own, func(o rules.OwnVolume) bool { return o.Volume.Name == name }); j >= 0 {
			errs = append(errs, field.Forbidden(root.Child("spec", "volumes").Index(i).Child("name"),
				name+" is the volume of "+own[j].Field+"; use another name, or remove "+own[j].Field))
		}
	}
	return errs
}

// inBoth returns the error of a field of the pod template that is set in the object's own
// field as well.
func inBoth(path *field.Path, own string) *field.Error {
	return field.Forbidden(path, "may be set in one place only: remove it here, or remove "+own)
}

// mountsOverOwn refuses mounts of the main container at the path of a volume that the object's
// own fields define. Kubernetes refuses only those with the same text.
func mountsOverOwn(list *field.Path, c *corev1.Container, own []rules.OwnVolume) field.ErrorList {
	var errs field.ErrorList
	for _, o := range own {
		for i := range c.VolumeMounts {
			if path.Clean(c.VolumeMounts[i].MountPath) == path.Clean(o.Mount.MountPath) {
				errs = append(errs, field.Forbidden(list.Index(i).Child("mountPath"),
					o.Field+" is mounted at "+o.Mount.MountPath+"; remove this mount, or remove "+o.Field))
			}
		}
	}
	return errs
}

// ownInitContainer returns the errors of what is added to an init container that the object's
// own fields define: it may have more environment variables and mounts, and other resources and
// another security context, and nothing else.
func ownInitContainer(at *field.Path, c *corev1.Container) field.ErrorList {
	rest := *c
	rest.Name, rest.Env, rest.VolumeMounts, rest.SecurityContext = "", nil, nil, nil
	rest.Resources.Limits, rest.Resources.Requests = nil, nil
	if equality.Semantic.DeepEqual(rest, corev1.Container{}) {
		return nil
	}
	return field.ErrorList{field.Forbidden(at, c.Name+" is the init container of spec.model, of which only env, "+
		"volumeMounts, securityContext, resources.limits and resources.requests may be set; remove the other fields, or use another name")}
}
