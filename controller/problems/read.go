// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=list

const (
	// pageSize and maxPages bound a read: an object in etcd has up to 1.5 MiB, and a page is all
	// that is in memory.
	pageSize, maxPages = 10, 50
	// annotationRevision numbers the pod templates of a Deployment; its controller sets it on each
	// ReplicaSet. The highest is the one that it runs.
	annotationRevision = "deployment.kubernetes.io/revision"
	// labelGeneration is the template generation of a DaemonSet's pod.
	labelGeneration = "pod-template-generation"
)

// Workload is a child that runs pods: a Deployment or a DaemonSet.
type Workload struct {
	deployment *appsv1.Deployment
	daemonSet  *appsv1.DaemonSet
}

// OfDeployment returns a Deployment as a Workload.
func OfDeployment(d *appsv1.Deployment) Workload { return Workload{deployment: d} }

// OfDaemonSet returns a DaemonSet as a Workload.
func OfDaemonSet(d *appsv1.DaemonSet) Workload { return Workload{daemonSet: d} }

// IsObserved reports whether the cluster has acted on the last change of the workload.
func (w Workload) IsObserved() bool {
	if w.daemonSet != nil {
		return status.IsObserved(w.daemonSet.Generation, w.daemonSet.Status.ObservedGeneration)
	}
	return status.IsObserved(w.deployment.Generation, w.deployment.Status.ObservedGeneration)
}

func (w Workload) version() string {
	if w.daemonSet != nil {
		return w.daemonSet.ResourceVersion
	}
	return w.deployment.ResourceVersion
}

func (w Workload) selector() *metav1.LabelSelector {
	if w.daemonSet != nil {
		return w.daemonSet.Spec.Selector
	}
	return w.deployment.Spec.Selector
}

// read returns what the pods of a workload say: those of the current template, and those of others
// only if these say nothing. A rollout deletes the others.
func (d *Diagnoser) read(ctx context.Context, s *Subject) (Result, error) {
	selector, err := metav1.LabelSelectorAsSelector(s.Workload.selector())
	if err != nil {
		return Result{}, fmt.Errorf("the selector of the workload: %w", err)
	}
	r := &reader{Reader: d.Reader, namespace: s.Owner.GetNamespace(), selector: selector}
	key, current, err := r.template(ctx, s.Workload)
	if err != nil || len(r.owners) == 0 {
		return newTally(d.Clock.Now()).result(s.Workload), err
	}
	t := newTally(d.Clock.Now())
	t.current = true
	if err = r.pods(ctx, key, selection.Equals, current, t); err == nil && len(t.found) == 0 {
		t.current = false
		err = r.pods(ctx, key, selection.NotEquals, current, t)
	}
	result := t.result(s.Workload)
	if r.more {
		result.Note = fmt.Sprintf("only %d of its pods were read", pageSize*maxPages)
	}
	return result, err
}

// reader reads the pods of one workload.
type reader struct {
	client.Reader
	namespace string
	selector  labels.Selector
	// owners are the controllers of the pods. A label alone does not say whose a pod is: every
	// user who may create pods may give one the labels that the selector matches.
	owners sets.Set[types.UID]
	// more is true if not all pods were read.
	more bool
}

// template finds the owners of the pods, and returns the label by which the pods of the current
// template are known, and its value.
func (r *reader) template(ctx context.Context, w Workload) (key, value string, err error) {
	if w.daemonSet != nil {
		r.owners = sets.New(w.daemonSet.UID)
		return labelGeneration, w.daemonSet.Annotations[appsv1.DeprecatedTemplateGeneration], nil
	}
	r.owners = sets.Set[types.UID]{}
	highest := int64(-1)
	newList := func() *metav1.PartialObjectMetadataList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
		return list
	}
	_, err = pages(ctx, r, "ReplicaSets", r.selector, newList, func(list *metav1.PartialObjectMetadataList) {
		for i := range list.Items {
			set := &list.Items[i]
			if !metav1.IsControlledBy(set, w.deployment) {
				continue
			}
			r.owners.Insert(set.UID)
			if revision, err := strconv.ParseInt(set.Annotations[annotationRevision], 10, 64); err == nil && revision > highest {
				highest, value = revision, set.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
			}
		}
	})
	return appsv1.DefaultDeploymentUniqueLabelKey, value, err
}

// pods adds the pods whose label has, or has not, a value.
func (r *reader) pods(ctx context.Context, key string, operator selection.Operator, value string, t *tally) error {
	requirement, err := labels.NewRequirement(key, operator, []string{value})
	if err != nil {
		return fmt.Errorf("the label of the current template: %w", err)
	}
	selector := r.selector.DeepCopySelector().Add(*requirement)
	more, err := pages(ctx, r, "pods", selector, func() *corev1.PodList { return &corev1.PodList{} }, func(list *corev1.PodList) {
		for i := range list.Items {
			if owner := metav1.GetControllerOfNoCopy(&list.Items[i]); owner != nil && r.owners.Has(owner.UID) {
				t.add(&list.Items[i])
			}
		}
	})
	r.more = r.more || more
	return err
}

// pages reads a list page by page, and reports whether there is more than maxPages. Each page is
// decoded into a new list: a value that is used again keeps what is not in the next page.
func pages[L client.ObjectList](ctx context.Context, r *reader, what string, selector labels.Selector, newList func() L, visit func(L)) (more bool, err error) {
	next := ""
	for range maxPages {
		list := newList()
		if err := r.List(ctx, list, client.InNamespace(r.namespace), client.MatchingLabelsSelector{Selector: selector},
			client.Limit(pageSize), client.Continue(next)); err != nil {
			return false, fmt.Errorf("listing %s: %w", what, err)
		}
		visit(list)
		if next = list.GetContinue(); next == "" {
			return false, nil
		}
	}
	return true, nil
}
