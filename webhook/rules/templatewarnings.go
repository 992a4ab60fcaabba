// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	out = append(out, metaWarnings(&template.ObjectMeta)...)
	if template.Spec.DeprecatedServiceAccount != "" && template.Spec.ServiceAccountName == "" {
		out = append(out, podTemplate.Child("spec", "serviceAccount").String()+": deprecated, and has no effect: write serviceAccountName")
	}
	if _, ok := template.Annotations[AnnotationRestartedAt]; ok {
		out = append(out, podTemplate.Child("metadata", "annotations").Key(AnnotationRestartedAt).String()+
			": has no effect: use kubectl rollout restart, or an Eru")
	}
	return out
}

// metaWarnings are sentences on what a pod template's metadata can hold, and no
// Deployment or DaemonSet hands on to its pods.
func metaWarnings(meta *metav1.ObjectMeta) []string {
	var out []string
	for _, f := range [...]struct {
		name string
		set  bool
	}{
		{"name", meta.Name != ""},
		{"generateName", meta.GenerateName != ""},
		{"namespace", meta.Namespace != ""},
		{"selfLink", meta.SelfLink != ""}, //nolint:staticcheck // Deprecated, and still a field that a client may set.
		{"uid", meta.UID != ""},
		{"resourceVersion", meta.ResourceVersion != ""},
		{"generation", meta.Generation != 0},
		{"creationTimestamp", !meta.CreationTimestamp.IsZero()},
		{"deletionTimestamp", meta.DeletionTimestamp != nil},
		{"deletionGracePeriodSeconds", meta.DeletionGracePeriodSeconds != nil},
		{"ownerReferences", len(meta.OwnerReferences) > 0},
		{"managedFields", len(meta.ManagedFields) > 0},
	} {
		if f.set {
			out = append(out, podTemplate.Child("metadata", f.name).String()+": has no effect on pods, only labels and annotations have")
		}
	}
	if len(meta.Finalizers) > 0 {
		out = append(out, podTemplate.Child("metadata", "finalizers").String()+": a deleted pod stays until a client removes them from it")
	}
	return out
}
