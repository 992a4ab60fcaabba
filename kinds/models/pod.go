// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const (
	// Volume is the name of the volume with spec.model, and begins that of another model.
	Volume = "model"
	// Container is the name of the init container that fetches the model.
	Container = "fetch-model"
	// Command is its entrypoint. No other container has it together with that name.
	Command = "/fetch-model"

	// ownDirectory is the model's directory in the volume of a pod.
	ownDirectory = "model"
	// imageGroup is the group of the user that the image runs as (Dockerfile.controller).
	imageGroup = int64(65532)

	// mirrorFlag begins each of the arguments with a mirror.
	mirrorFlag = "--mirror="
	// volumePath is where the container that fetches sees the whole volume of spec.model, and
	// begins the path of another one.
	volumePath = "/volume"
)

// Pod is what the models add to a pod.
type Pod struct {
	// Volumes are those of the models, with their mounts. Models in one claim share the volume of
	// the first.
	Volumes []rules.OwnVolume
	// Fetch is the init container that fetches, nil if each model is an image or a claim.
	Fetch *corev1.Container
}

// PodOf returns what models add to a pod whose main container has these resources, nil for none.
func PodOf(models []Model, fetcher Fetcher, main corev1.ResourceRequirements) *Pod {
	if len(models) == 0 {
		return nil
	}
	pod := &Pod{}
	var fetched []Model
	for i := range models {
		m := &models[i]
		volume := corev1.Volume{Name: m.VolumeName(), VolumeSource: m.volumeSource()}
		if at := slices.IndexFunc(pod.Volumes, func(v rules.OwnVolume) bool { return sameClaim(&v.Volume, &volume) }); at >= 0 {
			volume = pod.Volumes[at].Volume // A pod that has one claim by two volumes does not start with each kubelet.
		}
		mount := corev1.VolumeMount{Name: volume.Name, MountPath: m.MountPath, SubPath: m.From.Path, ReadOnly: true}
		if m.From.IsFetched() {
			fetched, mount.SubPath = append(fetched, *m), m.Directory()
			if volume.PersistentVolumeClaim != nil {
				volume.PersistentVolumeClaim.ReadOnly = false
			}
		}
		pod.Volumes = append(pod.Volumes, rules.OwnVolume{Volume: volume, Mount: mount, Field: m.At.String()})
	}
	pod.Fetch = pod.container(fetched, fetcher, main)
	return pod
}

func sameClaim(a, b *corev1.Volume) bool {
	return a.PersistentVolumeClaim != nil && b.PersistentVolumeClaim != nil && a.PersistentVolumeClaim.ClaimName == b.PersistentVolumeClaim.ClaimName
}

// volumeOf returns the name of the volume that has a model, which another model in the same claim
// may define.
func (p *Pod) volumeOf(m *Model) string {
	return p.Volumes[slices.IndexFunc(p.Volumes, func(v rules.OwnVolume) bool { return v.Field == m.At.String() })].Volume.Name
}

// pathOf returns where the container that fetches sees a volume.
func pathOf(volume string) string { return volumePath + strings.TrimPrefix(volume, Volume) }
