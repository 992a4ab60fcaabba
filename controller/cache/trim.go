// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The bounds of what is held of an object of another kind than ours, in bytes. Texts that a client
// may write without a limit of the API server's share maxContent. A text that is cut has three dots
// at its end, so that it is not taken for another, shorter value.
const (
	maxContent    = 2048
	maxSelector   = 512
	maxText       = 256
	maxConditions = 8
)

// Trim removes from an object all that the controllers do not read, so that it takes no more than
// maxContent beside its Go struct, however large it is. What our field manager owns in it becomes a
// hash, see Stored. It is a TransformFunc, and changes nothing in an object that has passed it.
func Trim(in any) (any, error) {
	obj, ok := in.(client.Object)
	if !ok {
		return in, nil
	}
	if own, ok := in.(undecoded); ok {
		obj.SetManagedFields(nil)
		own.trim()
		return in, nil
	}
	if obj.GetSelfLink() != "" {
		return in, nil
	}
	left := budget(maxContent)
	meta := left.metadata(obj)
	// No API server sets this field, and none stores what a client sets.
	(&meta).SetSelfLink(cmp.Or(Stored(obj), nothingOwned))
	left.keep(obj, meta)
	return in, nil
}

// keep reduces an object to its metadata and the fields that are read of its kind.
func (left *budget) keep(obj client.Object, meta metav1.ObjectMeta) {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		*obj = appsv1.Deployment{ObjectMeta: meta, Status: obj.Status, Spec: appsv1.DeploymentSpec{
			Replicas: obj.Spec.Replicas, Paused: obj.Spec.Paused, ProgressDeadlineSeconds: obj.Spec.ProgressDeadlineSeconds,
			Selector: left.selector(obj.Spec.Selector), Template: left.template(&obj.Spec.Template),
		}}
		obj.Status.Conditions = left.deploymentConditions(obj.Status.Conditions)
	case *appsv1.DaemonSet:
		*obj = appsv1.DaemonSet{ObjectMeta: meta, Status: obj.Status, Spec: appsv1.DaemonSetSpec{
			Selector: left.selector(obj.Spec.Selector), Template: left.template(&obj.Spec.Template),
		}}
		obj.Status.Conditions = nil
	case *autoscalingv2.HorizontalPodAutoscaler:
		left.keepAutoscaler(obj, meta)
	case *corev1.Service:
		*obj = corev1.Service{ObjectMeta: meta}
	case *policyv1.PodDisruptionBudget:
		*obj = policyv1.PodDisruptionBudget{ObjectMeta: meta}
	case *metav1.PartialObjectMetadata: // Of a ConfigMap or a Secret, whose data is read elsewhere.
		obj.ObjectMeta = meta
	case *unstructured.Unstructured:
		left.keepUnstructured(obj, meta)
	}
}

func (left *budget) keepAutoscaler(obj *autoscalingv2.HorizontalPodAutoscaler, meta metav1.ObjectMeta) {
	target, conditions := obj.Spec.ScaleTargetRef, obj.Status.Conditions
	*obj = autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta}
	obj.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{
		APIVersion: left.cut(target.APIVersion), Kind: left.cut(target.Kind), Name: left.cut(target.Name),
	}
	for i := range conditions[:min(len(conditions), maxConditions)] {
		c := &conditions[i]
		obj.Status.Conditions = append(obj.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{
			Type:   autoscalingv2.HorizontalPodAutoscalerConditionType(left.cut(string(c.Type))),
			Status: corev1.ConditionStatus(left.cut(string(c.Status))), Reason: left.cut(c.Reason), Message: left.cut(c.Message),
		})
	}
}

func (left *budget) deploymentConditions(all []appsv1.DeploymentCondition) (kept []appsv1.DeploymentCondition) {
	for i := range all[:min(len(all), maxConditions)] {
		c := &all[i]
		kept = append(kept, appsv1.DeploymentCondition{
			Type:   appsv1.DeploymentConditionType(left.cut(string(c.Type))),
			Status: corev1.ConditionStatus(left.cut(string(c.Status))), Reason: left.cut(c.Reason), Message: left.cut(c.Message),
			LastTransitionTime: c.LastTransitionTime, LastUpdateTime: c.LastUpdateTime,
		})
	}
	return kept
}

// template keeps the time of a restart, and the hash of what a template of ours has of the
// configuration.
func (left *budget) template(of *corev1.PodTemplateSpec) (kept corev1.PodTemplateSpec) {
	kept.Annotations = left.annotations(of.Annotations, api.AnnotationRestartedAt)
	if value, ok := of.Annotations[api.AnnotationConfiguration]; ok {
		metav1.SetMetaDataAnnotation(&kept.ObjectMeta, api.AnnotationConfiguration, Digest(value))
	}
	return kept
}

// Digest returns what the cache holds of a text that is too long for it: half of its SHA-256.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Holds reports whether what the cache, or the API server, has in place of a text is of this text.
func Holds(held, text string) bool { return held == text || held == Digest(text) }

// selector returns nil for one that is too long to be held, which has to be read where it is used.
// The API server stores no Deployment and no DaemonSet without one.
func (left *budget) selector(of *metav1.LabelSelector) *metav1.LabelSelector {
	if of == nil || of.Size() > min(maxSelector, int(*left)) {
		return nil
	}
	*left -= budget(of.Size())
	return of
}

// budget is how many bytes of text may still be held of an object.
type budget int

// cut returns as much of a text as may be held.
func (left *budget) cut(text string) string { return left.cutTo(text, maxText) }

func (left *budget) cutTo(text string, most int) string {
	const shortest = 4 // One byte and three dots.
	most = min(most, int(*left))
	if len(text) > most && most < shortest {
		return ""
	}
	kept := rules.Cut(text, most)
	if len(kept) != len(text) {
		kept = strings.Clone(kept)
	}
	*left -= budget(len(kept))
	return kept
}

// metadata returns what is read of the metadata of all kinds, first of all its identity.
func (left *budget) metadata(obj client.Object) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name: left.cut(obj.GetName()), Namespace: left.cut(obj.GetNamespace()), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), Generation: obj.GetGeneration(),
		CreationTimestamp: obj.GetCreationTimestamp(), DeletionTimestamp: obj.GetDeletionTimestamp(),
	}
	if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
		meta.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: left.cut(owner.APIVersion), Kind: left.cut(owner.Kind), Name: left.cut(owner.Name),
			UID: types.UID(left.cut(string(owner.UID))), Controller: new(true),
		}}
	}
	meta.Annotations = left.annotations(obj.GetAnnotations(), append(mtsrev1.Annotations(),
		api.AnnotationRevision, api.AnnotationRolloutNow, appsv1.DeprecatedTemplateGeneration)...)
	return meta
}

func (left *budget) annotations(all map[string]string, keys ...string) (kept map[string]string) {
	for _, key := range keys {
		if value, ok := all[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = left.cut(value)
		}
	}
	return kept
}

// keepUnstructured keeps of a kind that has no Go type here the conditions in its status, those for
// each parent of a route among them.
func (left *budget) keepUnstructured(obj *unstructured.Unstructured, meta metav1.ObjectMeta) {
	status, _ := obj.Object["status"].(map[string]any)
	kept := &unstructured.Unstructured{}
	kept.SetGroupVersionKind(obj.GroupVersionKind())
	setMetadata(kept, meta)
	conditions := maxConditions
	of := func(in any) map[string]any {
		holder, _ := in.(map[string]any)
		return map[string]any{"conditions": left.conditions(holder, &conditions)}
	}
	reduced := of(status)
	if parents, ok := status["parents"].([]any); ok {
		var each []any
		for _, parent := range parents[:min(len(parents), maxConditions)] {
			each = append(each, of(parent))
		}
		reduced["parents"] = each
	}
	kept.Object["status"] = reduced
	obj.Object = kept.Object
}

func (left *budget) conditions(of map[string]any, most *int) []any {
	all, _ := of["conditions"].([]any)
	kept := []any{}
	for _, item := range all[:min(len(all), *most)] {
		in, _ := item.(map[string]any)
		out := map[string]any{}
		for _, key := range []string{"type", "status", "reason", "message"} {
			if text, ok := in[key].(string); ok {
				out[key] = left.cut(text)
			}
		}
		if generation, ok := in["observedGeneration"].(int64); ok {
			out["observedGeneration"] = generation
		}
		kept = append(kept, out)
		*most--
	}
	return kept
}

// setMetadata sets the metadata that metadata returns. The converter would keep zero values.
func setMetadata(obj *unstructured.Unstructured, meta metav1.ObjectMeta) {
	obj.SetName(meta.Name)
	obj.SetNamespace(meta.Namespace)
	obj.SetUID(meta.UID)
	obj.SetResourceVersion(meta.ResourceVersion)
	obj.SetGeneration(meta.Generation)
	obj.SetCreationTimestamp(meta.CreationTimestamp)
	obj.SetDeletionTimestamp(meta.DeletionTimestamp)
	obj.SetSelfLink(meta.GetSelfLink())
	obj.SetAnnotations(meta.Annotations)
	obj.SetOwnerReferences(meta.OwnerReferences)
}
