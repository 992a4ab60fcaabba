// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/tree"
)

// snapshot reads the object and what belongs to it. What may not be read is left out.
func (t *target) snapshot(ctx context.Context) (*tree.Snapshot, error) {
	obj := t.kind.New()
	if err := t.get(ctx, obj); err != nil {
		return nil, err
	}
	s := &tree.Snapshot{Name: fmt.Sprintf("%s/%s", t.kind.GVK.Kind, obj.GetName()), Object: obj, Owns: t.kind.Workload()}
	var err error
	if s.Children, err = t.children(ctx, obj); err != nil {
		return nil, err
	}
	if s.Pods, err = t.pods(ctx, s.Children); err != nil {
		return nil, err
	}
	events := &corev1.EventList{}
	if err := t.client.List(ctx, events, client.InNamespace(t.key.Namespace), client.MatchingFields{"involvedObject.name": t.key.Name}); err != nil {
		return nil, fmt.Errorf("listing events: %w", err)
	}
	s.Events = events.Items
	return s, nil
}

// children returns the children of an object that exist.
func (t *target) children(ctx context.Context, obj client.Object) ([]client.Object, error) {
	var out []client.Object
	for i, child := range t.candidates(obj) {
		kind := child.GetObjectKind().GroupVersionKind()
		err := t.client.Get(ctx, client.ObjectKeyFromObject(child), child)
		if i > 1 && (apierrors.IsForbidden(err) || meta.IsNoMatchError(err)) {
			continue // Not every user may read those of blocks, nor does each cluster have their kinds.
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, child.GetName(), err)
		}
		if err == nil {
			child.GetObjectKind().SetGroupVersionKind(kind)
			out = append(out, child)
		}
	}
	return out, nil
}

// candidates returns empty objects with the names of an object's children: those that run pods, the Service, and those of blocks.
func (t *target) candidates(obj client.Object) []client.Object {
	out := t.kind.ChildKinds()
	if !t.kind.Workload() {
		out = out[:1] // The Deployment that it acts on.
	}
	for _, child := range out {
		child.SetNamespace(t.key.Namespace)
		child.SetName(kinds.WorkloadOf(obj))
	}
	return out
}

// pods returns the pods that the first child selects.
func (t *target) pods(ctx context.Context, children []client.Object) ([]corev1.Pod, error) {
	if len(children) == 0 {
		return nil, nil
	}
	var selector *metav1.LabelSelector
	switch child := children[0].(type) {
	case *appsv1.Deployment:
		selector = child.Spec.Selector
	case *appsv1.DaemonSet:
		selector = child.Spec.Selector
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector) // Without a selector it selects nothing.
	if err != nil {
		return nil, err
	}
	pods := &corev1.PodList{}
	if err := t.client.List(ctx, pods, client.InNamespace(t.key.Namespace), client.MatchingLabelsSelector{Selector: parsed}); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	return pods.Items, nil
}
