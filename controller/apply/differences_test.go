// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What the API server completes or rounds, and what other managers add, was not rewritten.
func TestRewritten(t *testing.T) {
	t.Parallel()
	sources := func(more ...func(*corev1.ServiceAccountTokenProjection)) []corev1.Volume {
		token := &corev1.ServiceAccountTokenProjection{Path: "token"}
		for _, change := range more {
			change(token)
		}
		return []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: token}},
		}}}}
	}
	for name, test := range map[string]struct {
		change func(*appsv1.Deployment)
		want   []string
	}{
		"nothing":   {func(*appsv1.Deployment) {}, nil},
		"an image":  {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "mirror/a:1" }, []string{`spec.template.spec.containers[name="main"].image`}},
		"a removal": {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Tolerations = nil }, []string{"spec.template.spec.tolerations"}},
		"a sidecar": {func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "mesh"})
		}, nil},
		"an argument more": {func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Args = append(d.Spec.Template.Spec.Containers[0].Args, "--c")
		}, []string{`spec.template.spec.containers[name="main"].args`}},
		"a rounded quantity": {func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1m")
		}, nil},
		"a default in a list that is merged as a whole": {func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes = sources(func(p *corev1.ServiceAccountTokenProjection) { p.ExpirationSeconds = new(int64(3600)) })
		}, nil},
		"another value in it": {func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes = sources(func(p *corev1.ServiceAccountTokenProjection) { p.Path = "other" })
		}, []string{`spec.template.spec.volumes[name="token"].projected.sources`}},
		"more than are named": {func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Labels, d.Spec.Template.Spec = nil, nil, corev1.PodSpec{}
		}, []string{
			"metadata.labels.a", "spec.replicas", "spec.template.spec.tolerations",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			desired := deployment(func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Volumes = sources()
				d.Spec.Template.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("100u")
			})
			answer := desired.DeepCopy()
			test.change(answer)
			if got := rewritten(desired, answer); !slices.Equal(got, test.want) {
				t.Errorf("rewritten are %q, want %q", got, test.want)
			}
		})
	}
}
