// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const (
	// maxChild is the longest child in protobuf that is held whole: twice what a spec may have.
	maxChild = 2 * rules.MaxBytes
	// TooLarge marks a longer one in metadata.selfLink, which no API server sets and no client can.
	TooLarge = "too large"
)

// ErrTooLarge says why a child that is TooLarge is not compared with its desired state.
var ErrTooLarge = fmt.Errorf("it is larger than %d bytes: remove what other clients added, or delete it", maxChild)

// trim removes from an object what the controllers do not read: managedFields, kubectl's copy of
// the manifest, and most of what is not a child, or is large. So an object of another client takes
// no more than a few kB, however large it is. It is a TransformFunc.
func trim(in any) (any, error) {
	obj, ok := in.(client.Object)
	if !ok {
		return in, nil
	}
	obj.SetManagedFields(nil)
	if own, ok := in.(undecoded); ok {
		own.trim()
		return in, nil
	}
	size, child := sizeOf(obj), isChild(obj)
	if child && size <= maxChild && obj.GetSelfLink() == "" {
		delete(obj.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
		return in, nil
	}
	meta := trimmedMetadata(obj)
	if child {
		meta.SetSelfLink(TooLarge)
	}
	keepMetadata(obj, meta)
	return in, nil
}

// keepMetadata removes from an object all but its metadata, and what is read of a foreign one.
func keepMetadata(obj client.Object, meta metav1.ObjectMeta) {
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		trimUnstructured(obj, meta)
	case *policyv1.PodDisruptionBudget:
		*obj = policyv1.PodDisruptionBudget{ObjectMeta: meta}
	case *appsv1.Deployment:
		*obj = appsv1.Deployment{ObjectMeta: meta, Spec: foreignDeployment(&obj.Spec), Status: foreignStatus(obj.Status)}
	case *appsv1.DaemonSet:
		obj.Status.Conditions = nil
		*obj = appsv1.DaemonSet{ObjectMeta: meta, Status: obj.Status}
	case *metav1.PartialObjectMetadata: // Of a ConfigMap or a Secret, whose data is read elsewhere.
		obj.ObjectMeta = meta
	case *corev1.Service:
		*obj = corev1.Service{ObjectMeta: meta}
	case *autoscalingv2.HorizontalPodAutoscaler:
		target := obj.Spec.ScaleTargetRef
		*obj = autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: cut(target.APIVersion), Kind: cut(target.Kind), Name: cut(target.Name)},
		}}
	}
}

// sizeOf returns the size of an object in protobuf, and in JSON if its kind has no Go type here.
func sizeOf(obj client.Object) int {
	if encoded, ok := obj.(interface{ Size() int }); ok {
		return encoded.Size()
	}
	data, _ := json.Marshal(obj) // It came as JSON.
	return len(data)
}

func trimUnstructured(obj *unstructured.Unstructured, meta metav1.ObjectMeta) {
	content, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(&metav1.PartialObjectMetadata{ObjectMeta: meta}) // It has no other types.
	obj.Object = map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": content["metadata"]}
}

// isChild reports whether an owner of a kind with children, and of the object's name, as children
// have it, controls the object. The garbage collector deletes one whose owner does not exist, so
// there are not many more of them than owners.
func isChild(obj client.Object) bool {
	controller := metav1.GetControllerOfNoCopy(obj)
	if controller == nil || controller.Name != obj.GetName() {
		return false
	}
	kind := all.Of(schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind())
	return kind != nil && kind.HasPods()
}

// The maximum lengths of what clients write without a limit of the API server's, in bytes. What
// is longer has three dots at its end, so that it is not taken for another, shorter value.
const (
	maxText     = 1024
	maxSelector = 4096
)

func cut(text string) string { return rules.Cut(text, maxText) }

// trimmedMetadata returns the name, the uid, the controller and the annotations of an object that
// is not held whole: those of a Deployment for which an Eru is created, and of its pod template.
func trimmedMetadata(obj client.Object) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), Generation: obj.GetGeneration(),
		CreationTimestamp: obj.GetCreationTimestamp(), DeletionTimestamp: obj.GetDeletionTimestamp(),
		Annotations: foreignAnnotations(obj.GetAnnotations()),
	}
	if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
		meta.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: cut(owner.APIVersion), Kind: cut(owner.Kind), Name: cut(owner.Name), UID: types.UID(cut(string(owner.UID))), Controller: new(true),
		}}
	}
	return meta
}

func foreignAnnotations(all map[string]string) map[string]string {
	var kept map[string]string
	for _, key := range append(mtsrev1.Annotations(), api.AnnotationRestartedAt) {
		if value, ok := all[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = cut(value)
		}
	}
	return kept
}

// foreignDeployment returns what a UnitedDeployment or an Eru reads of the Deployment that it acts
// on.
func foreignDeployment(spec *appsv1.DeploymentSpec) appsv1.DeploymentSpec {
	kept := appsv1.DeploymentSpec{Replicas: spec.Replicas, Paused: spec.Paused}
	kept.Template.Annotations = foreignAnnotations(spec.Template.Annotations)
	if spec.Selector != nil && spec.Selector.Size() <= maxSelector {
		kept.Selector = spec.Selector
	}
	return kept
}

// foreignStatus returns the counters and the first conditions of a Deployment, which has three.
func foreignStatus(status appsv1.DeploymentStatus) appsv1.DeploymentStatus {
	conditions := status.Conditions
	status.Conditions = nil
	for _, condition := range conditions[:min(len(conditions), 5)] {
		condition.Type, condition.Reason = appsv1.DeploymentConditionType(cut(string(condition.Type))), cut(condition.Reason)
		condition.Status, condition.Message = corev1.ConditionStatus(cut(string(condition.Status))), cut(condition.Message)
		status.Conditions = append(status.Conditions, condition)
	}
	return status
}

// pageSize is how many objects of a list are decoded at once: one in etcd has up to 1.5 MiB, and may
// be ten times as long when it is decoded.
const pageSize = 10

// reading is held while a page is read and trimmed, by all informers of the process.
var reading = semaphore.NewWeighted(1)

// newInformer returns client-go's informer. It reads its objects in one watch, in which each is
// trimmed before the next is decoded, and lists them where the API server has no such watches. The
// lists of client-go have 500 objects a page, or all objects where the API server ignores a limit
// (resourceVersion 0), and are trimmed at their end; these are read and trimmed page by page.
func newInformer(of toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	in := toolscache.ToListerWatcherWithContext(of)
	pages := pager.ListPager{PageFn: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return readPage(ctx, in, opts)
	}}
	list := func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		opts.ResourceVersion, opts.ResourceVersionMatch, opts.Limit = "", "", pageSize
		all, _, err := pages.ListWithAlloc(ctx, opts)
		return all, err
	}
	return toolscache.NewSharedIndexInformer(
		&toolscache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: in.WatchWithContext}, kind, resync, indexers)
}

// readPage returns a page whose objects are trimmed.
func readPage(ctx context.Context, from toolscache.ListerWithContext, opts metav1.ListOptions) (runtime.Object, error) {
	if err := reading.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer reading.Release(1)
	page, err := from.ListWithContext(ctx, opts)
	if err != nil {
		return nil, err
	}
	return page, meta.EachListItem(page, func(obj runtime.Object) error {
		_, err := trim(obj)
		return err
	})
}
