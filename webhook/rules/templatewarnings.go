// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import corev1 "k8s.io/api/core/v1"

// AnnotationRestartedAt is the annotation of a pod template that "kubectl rollout
// restart" writes (k8s.io/kubectl/pkg/polymorphichelpers/objectrestarter.go). In
// spec.podTemplate it has no effect: it would undo every restart that is newer.
const AnnotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

// TemplateWarnings are sentences on what in a template is allowed and yet likely to
// surprise. The template may be nil.
func TemplateWarnings(template *corev1.PodTemplateSpec) []string {
	if template == nil {
		return nil
	}
	out := imageWarnings(template)
	if _, ok := template.Annotations[AnnotationRestartedAt]; ok {
		out = append(out, podTemplate.Child("metadata", "annotations").Key(AnnotationRestartedAt).String()+
			": has no effect: use kubectl rollout restart, or an Eru")
	}
	return out
}
