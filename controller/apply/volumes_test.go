// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestMissingVolumes(t *testing.T) {
	t.Parallel()
	image := []corev1.Volume{{Name: "model", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "a"}}}}
	desired := deployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Volumes = image })
	const missing = `Deployment.apps "box" is invalid: spec.template.spec.volumes[model].image: Forbidden: image volumes need Kubernetes 1.35 or later; use https:// or s3://`
	for name, test := range map[string]struct {
		volumes []corev1.Volume
		want    string
	}{
		"stored":         {image, ""},
		"removed":        {nil, missing},
		"another source": {[]corev1.Volume{{Name: "model", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}, missing},
	} {
		stored := deployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Volumes = test.volumes })
		if got := text(missingVolumes(desired, stored)); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
		if err := missingVolumes(deployment(), stored); err != nil {
			t.Errorf("%s: without such a volume: %v", name, err)
		}
	}
}
