// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/pack"
)

// Trim drops from an object what the controllers never read, before it enters a
// cache: field sets, kubectl's copy of the manifest, and of what is not ours the pod
// template, the ports and all of an autoscaler but its target. What is left is packed.
// It is an informer's TransformFunc and never errs.
func Trim(in any) (any, error) {
	obj, ok := in.(client.Object)
	if _, packed := in.(*pack.Object); packed || !ok {
		return in, nil // The cache may ask twice.
	}
	obj.SetManagedFields(ownEntries(obj.GetManagedFields()))
	if annotations := obj.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
	likeness := "ours"
	if obj.GetLabels()[api.LabelManagedBy] != api.ManagedBy {
		likeness = "foreign"
		trimForeign(obj)
	}
	return pack.Pack(obj, likeness, mtsrev1.Annotations()...), nil
}

// ownEntries keeps, of our own entries, who and how, which is all that
// createdByUs asks.
func ownEntries(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var own []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.Manager == FieldManager && entry.Subresource == "" {
			own = append(own, metav1.ManagedFieldsEntry{Manager: entry.Manager, Operation: entry.Operation})
		}
	}
	return own
}

func trimForeign(obj client.Object) {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		obj.Spec.Template.Labels = nil
		obj.Spec.Template.Spec = corev1.PodSpec{}
	case *appsv1.DaemonSet:
		obj.Spec.Template = corev1.PodTemplateSpec{}
	case *corev1.Service:
		obj.Spec = corev1.ServiceSpec{}
	case *autoscalingv2.HorizontalPodAutoscaler:
		obj.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: obj.Spec.ScaleTargetRef}
		obj.Status = autoscalingv2.HorizontalPodAutoscalerStatus{}
	}
}
