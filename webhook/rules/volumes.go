// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func volumeName(v *corev1.Volume) string { return v.Name }

func volumes(path *field.Path, list []corev1.Volume) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		errs = append(errs, Label(path.Index(i).Child("name"), list[i].Name)...)
	}
	return append(errs, unique(path, "name", list, volumeName)...)
}

// mounts judges what a container mounts. A pod's volumes all come from its template.
func (p *pod) mounts(path *field.Path, c *corev1.Container) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("volumeMounts")
	for i := range c.VolumeMounts {
		errs = append(errs, p.mount(at.Index(i), c.VolumeMounts[i].Name, "mountPath", c.VolumeMounts[i].MountPath)...)
	}
	errs = append(errs, unique(at, "mountPath", c.VolumeMounts, func(m *corev1.VolumeMount) string { return m.MountPath })...)
	at = path.Child("volumeDevices")
	for i := range c.VolumeDevices {
		errs = append(errs, p.mount(at.Index(i), c.VolumeDevices[i].Name, "devicePath", c.VolumeDevices[i].DevicePath)...)
	}
	return append(errs, unique(at, "devicePath", c.VolumeDevices, func(d *corev1.VolumeDevice) string { return d.DevicePath })...)
}

func (p *pod) mount(path *field.Path, volume, where, in string) field.ErrorList {
	var errs field.ErrorList
	if !p.volumes.has(volume) {
		errs = append(errs, field.Invalid(path.Child("name"), volume,
			"no volume has this name: add one to podTemplate's spec.volumes"))
	}
	if in == "" {
		errs = append(errs, field.Required(path.Child(where), "a path in the container is required"))
	}
	return errs
}
