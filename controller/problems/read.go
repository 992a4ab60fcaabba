// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=list

const (
	// pageSize and maxPages bound a read: an object in etcd has up to 1.5 MiB, and a page is all
	// that is in memory.
	pageSize, maxPages = 10, 50
	// AnnotationRevision numbers the pod templates of a Deployment; its controller sets it on each
	// ReplicaSet. The highest is the one that it runs.
	AnnotationRevision = "deployment.kubernetes.io/revision"
	// labelGeneration is the template generation of a DaemonSet's pod.
	labelGeneration = "pod-template-generation"
)

// errManySets reports that the ReplicaSet with the current template of a Deployment is not among
// those that were read.
var errManySets = fmt.Errorf("only %d of its ReplicaSets were read, and none of them has its current template", pageSize*maxPages)

// read returns what the pods of the current template say. A rollout deletes the others.
func (d *Diagnoser) read(ctx context.Context, s *Subject) (Result, error) {
	found := tally{}
	found.add(s.Workload.own)
	more, err := d.currentPods(ctx, s.Workload, maxPages, func(pod *corev1.Pod) { found.add(ofPod(pod, d.Clock.Now())) })
	result := Result{Problems: found.first()}
	if more {
		result.Note = fmt.Sprintf("only %d of its pods were read", pageSize*maxPages)
	}
	return result, err
}

// CurrentPods returns one page of the pods of a workload that have its current template.
func (d *Diagnoser) CurrentPods(ctx context.Context, w Workload) (pods []corev1.Pod, err error) {
	if !acquire(ctx) {
		return nil, fmt.Errorf("the pods of other objects are being read")
	}
	defer reading.Release(1)
	_, err = d.currentPods(ctx, w, 1, func(pod *corev1.Pod) { pods = append(pods, *pod) })
	return pods, err
}

// currentPods reads the pods of a workload that have its current template, and reports whether
// there are more.
func (d *Diagnoser) currentPods(ctx context.Context, w Workload, maxPages int, visit func(*corev1.Pod)) (more bool, err error) {
	ofPods, err := cache.Selector(ctx, d.Reader, w.Object)
	if err != nil {
		return false, err
	}
	selector, err := metav1.LabelSelectorAsSelector(ofPods)
	if err != nil {
		return false, fmt.Errorf("the selector of the workload: %w", err)
	}
	uid, current, err := d.template(ctx, w.Object, selector)
	if err != nil {
		return false, err
	}
	return d.pages(ctx, "pods", &corev1.PodList{}, w.GetNamespace(), selector.Add(*current), maxPages, func(obj client.Object) {
		// A label alone does not say whose a pod is: every user who may create pods may set it.
		if owner := metav1.GetControllerOfNoCopy(obj); owner != nil && owner.UID == uid {
			visit(obj.(*corev1.Pod))
		}
	})
}

// template returns the uid of the owner of the pods with the current template, and their label.
func (d *Diagnoser) template(ctx context.Context, w client.Object, selector labels.Selector) (types.UID, *labels.Requirement, error) {
	key, value, uid := labelGeneration, w.GetAnnotations()[appsv1.DeprecatedTemplateGeneration], w.GetUID()
	if _, ok := w.(*appsv1.Deployment); ok {
		key, value, uid = appsv1.DefaultDeploymentUniqueLabelKey, "", ""
		sets, highest := &metav1.PartialObjectMetadataList{}, int64(-1)
		sets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
		more, err := d.pages(ctx, "ReplicaSets", sets, w.GetNamespace(), selector, maxPages, func(set client.Object) {
			revision, err := strconv.ParseInt(set.GetAnnotations()[AnnotationRevision], 10, 64)
			if err == nil && revision > highest && metav1.IsControlledBy(set, w) {
				highest, value, uid = revision, set.GetLabels()[key], set.GetUID()
			}
		})
		// The Deployment has the number of the one that it runs.
		if err == nil && more && strconv.FormatInt(highest, 10) != w.GetAnnotations()[AnnotationRevision] {
			err = errManySets
		}
		if err != nil {
			return "", nil, err
		}
	}
	current, err := labels.NewRequirement(key, selection.Equals, []string{value})
	if err != nil {
		return "", nil, fmt.Errorf("the label of the current template: %w", err)
	}
	return uid, current, nil
}

// pages reads a list page by page, and reports whether there is more than maxPages.
func (d *Diagnoser) pages(
	ctx context.Context, what string, empty client.ObjectList, namespace string, selector labels.Selector, maxPages int,
	visit func(client.Object),
) (more bool, err error) {
	next := ""
	for range maxPages {
		list := empty.DeepCopyObject().(client.ObjectList) // One that is used again keeps what is not in the next page.
		options := &client.ListOptions{Namespace: namespace, LabelSelector: selector, Limit: pageSize, Continue: next}
		if err := d.Reader.List(ctx, list, options); err != nil {
			return false, fmt.Errorf("listing %s: %w", what, err)
		}
		if err := meta.EachListItem(list, func(obj runtime.Object) error {
			visit(obj.(client.Object))
			return nil
		}); err != nil {
			return false, err
		}
		if next = list.GetContinue(); next == "" {
			return false, nil
		}
	}
	return true, nil
}
