// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
)

// readable are the annotations that predicates and event handlers read in a packed object:
// those of an object that could not be decoded, and those of a Deployment that an Eru is
// created for.
var readable = append([]string{annotationError, annotationStatus}, mtsrev1.Annotations()...)

// trimAndPack removes from an object what the controllers do not read, and packs it. It is
// a TransformFunc for informers and returns no error.
func (p *packer) trimAndPack(in any) (any, error) {
	obj, ok := in.(client.Object)
	if _, packed := in.(*packedObject); packed || !ok {
		return in, nil // An informer may transform an object twice.
	}
	foreign := obj.GetLabels()[api.LabelManagedBy] != api.ManagedBy
	trim(obj, foreign)
	return p.pack(obj, foreign), nil
}

// trim removes what the controllers do not read: managedFields but for ownEntries, kubectl's
// copy of the manifest, and of a foreign object, which is not labeled as a child, also the
// pod template, the ports, and all of an autoscaler but its target.
func trim(obj client.Object, foreign bool) {
	obj.SetManagedFields(ownEntries(obj.GetManagedFields()))
	if annotations := obj.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
	if foreign {
		trimForeign(obj)
	}
}

// ownEntries returns the entries of managedFields that the controller wrote, without their
// field sets. Package apply reads whether the child has an entry of a plain create.
func ownEntries(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var own []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.Manager == api.FieldManager && entry.Subresource == "" {
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
