// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// names refuses a name that no Secret, ConfigMap or PersistentVolumeClaim can have, where
// Kubernetes only requires one: in volumes and imagePullSecrets. Such pods would never start, and
// the API server would refuse to read the object.
func names(template *corev1.PodTemplateSpec) field.ErrorList {
	var errs field.ErrorList
	check := func(path *field.Path, kind string) pod.Visitor {
		return func(name string) bool {
			errs = append(errs, rules.ObjectOf(kind, path, name)...)
			return true
		}
	}
	volumes, pullSecrets := root.Child("spec", "volumes"), root.Child("spec", "imagePullSecrets")
	for i := range template.Spec.Volumes {
		volume, path := &template.Spec.Volumes[i], volumes.Index(i)
		one := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{*volume}}}
		if volume.CSI == nil { // Kubernetes itself judges it.
			pod.VisitPodSecretNames(one, check(path, KindSecret))
		}
		pod.VisitPodConfigmapNames(one, check(path, KindConfigMap))
		if claim := volume.PersistentVolumeClaim; claim != nil && claim.ClaimName != "" {
			errs = append(errs, rules.ObjectOf("PersistentVolumeClaim", path.Child("persistentVolumeClaim", "claimName"), claim.ClaimName)...)
		}
	}
	for i, secret := range template.Spec.ImagePullSecrets {
		if secret.Name != "" { // The kubelet ignores an item without a name, which charts make.
			errs = append(errs, rules.ObjectOf(KindSecret, pullSecrets.Index(i).Child("name"), secret.Name)...)
		}
	}
	return errs
}
