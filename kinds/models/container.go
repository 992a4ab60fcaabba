// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// minMemory is the least memory of the container that fetches, where the main container has a
// memory limit or request: what it needs for the largest window of Zstandard, and page cache.
var minMemory = resource.MustParse("256Mi")

// container returns the container that fetches models, nil for none.
func (p *Pod) container(models []Model, fetcher Fetcher, main corev1.ResourceRequirements) *corev1.Container {
	if len(models) == 0 {
		return nil
	}
	out := &corev1.Container{
		Name:            Container,
		Image:           fetcher.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{Command},
		Args:            p.args(models, fetcher.Mirrors),
		Resources:       corev1.ResourceRequirements{Limits: compute(main.Limits), Requests: compute(main.Requests)},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			ReadOnlyRootFilesystem:   new(true),
			RunAsNonRoot:             new(true),
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	for i := range models {
		m := &models[i]
		mount := corev1.VolumeMount{Name: p.volumeOf(m), MountPath: pathOf(p.volumeOf(m))}
		if !slices.ContainsFunc(out.VolumeMounts, func(other corev1.VolumeMount) bool { return other.Name == mount.Name }) {
			out.VolumeMounts = append(out.VolumeMounts, mount)
		}
		if m.Credentials != nil {
			out.EnvFrom = append(out.EnvFrom, corev1.EnvFromSource{
				Prefix: m.envPrefix(), SecretRef: &corev1.SecretEnvSource{LocalObjectReference: *m.Credentials},
			})
		}
	}
	return out
}

// compute returns CPU and memory of the main container. So the container that fetches changes
// neither what the scheduler reserves for the pod, which is the maximum of both, nor the pod's
// quality of service class.
func compute(of corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(of)
	maps.DeleteFunc(out, func(name corev1.ResourceName, _ resource.Quantity) bool {
		return name != corev1.ResourceCPU && name != corev1.ResourceMemory
	})
	if memory, ok := out[corev1.ResourceMemory]; ok && memory.Cmp(minMemory) < 0 {
		out[corev1.ResourceMemory] = minMemory
	}
	return out
}
