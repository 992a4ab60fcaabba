// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The volume of spec.sharedMemory.
const (
	// SharedMemoryVolume is the name of the volume.
	SharedMemoryVolume = "shared-memory"
	// SharedMemoryPath is where the main container mounts it.
	SharedMemoryPath = "/dev/shm"
)

// OwnVolume is a volume that a field of an object defines, other than its pod template.
type OwnVolume struct {
	Volume corev1.Volume
	// Mount is the main container's mount of the volume.
	Mount corev1.VolumeMount
	// Field is the path of the object's field.
	Field string
}

// SharedMemory returns the volume of spec.sharedMemory, none if size is nil.
func SharedMemory(size *resource.Quantity) []OwnVolume {
	if size == nil {
		return nil
	}
	memory := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: size}
	return []OwnVolume{{
		Volume: corev1.Volume{Name: SharedMemoryVolume, VolumeSource: corev1.VolumeSource{EmptyDir: memory}},
		Mount:  corev1.VolumeMount{Name: SharedMemoryVolume, MountPath: SharedMemoryPath},
		Field:  "spec.sharedMemory",
	}}
}

// SharedMemorySize refuses a size that is not greater than 0, and one that is greater than
// the memory limit of the main container: what is stored in the volume counts against the
// limit, so that a process which filled the volume would be killed. Nil is valid, and so is
// any size without a limit.
func SharedMemorySize(path *field.Path, size *resource.Quantity, r *corev1.ResourceRequirements) field.ErrorList {
	if size == nil {
		return nil
	}
	if size.Sign() <= 0 {
		return field.ErrorList{field.Invalid(path, size.String(), "must be greater than 0")}
	}
	if r == nil {
		return nil
	}
	limit, ok := r.Limits[corev1.ResourceMemory]
	if !ok || limit.Sign() <= 0 || size.Cmp(limit) <= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, size.String(), "must be less than or equal to the memory limit of "+limit.String()+
		" of the main container, against which it counts; decrease it, or increase the limit")}
}
