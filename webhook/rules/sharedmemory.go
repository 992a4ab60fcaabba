// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The volume of spec.sharedMemory.
const (
	// SharedMemoryVolume is the name of the volume.
	SharedMemoryVolume = "shared-memory"
	// SharedMemoryPath is where the main container mounts it.
	SharedMemoryPath = "/dev/shm"
)

// SharedMemory returns the volume of spec.sharedMemory and the main container's mount of it,
// both nil if size is nil.
func SharedMemory(size *resource.Quantity) ([]corev1.Volume, []corev1.VolumeMount) {
	if size == nil {
		return nil, nil
	}
	memory := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: size}
	return []corev1.Volume{{Name: SharedMemoryVolume, VolumeSource: corev1.VolumeSource{EmptyDir: memory}}},
		[]corev1.VolumeMount{{Name: SharedMemoryVolume, MountPath: SharedMemoryPath}}
}
