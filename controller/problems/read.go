// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=list

const (
	// pageSize and maxPages bound a read: an object in etcd has up to 1.5 MiB, and a page is all
	// that is in memory.
	pageSize, maxPages = 10, 50
	// maxProblems is the bound of status.problems, maxFound that of the different problems that are
	// held during a read.
	maxProblems, maxFound = 5, 50
	// annotationRevision numbers the pod templates of a Deployment; its controller sets it on each
	// ReplicaSet. The highest is the one that it runs.
	annotationRevision = "deployment.kubernetes.io/revision"
	// labelGeneration is the template generation of a DaemonSet's pod.
	labelGeneration = "pod-template-generation"
)

// Workload is a child that runs pods: a Deployment or a DaemonSet.
type Workload struct {
	client.Object
	// Observed is true if the cluster has acted on the last change of the workload.
	Observed bool

	selector *metav1.LabelSelector
	own      *finding
}

// OfDeployment returns a Deployment as a Workload.
func OfDeployment(d *appsv1.Deployment) Workload {
	w := Workload{Object: d, Observed: status.IsObserved(d.Generation, d.Status.ObservedGeneration), selector: d.Spec.Selector}
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			w.own = newFinding(&corev1.Pod{}, reasonReplicaFailure, clean(condition.Message))
			w.own.Since, w.own.Count = condition.LastTransitionTime, 0
		}
	}
	return w
}

// OfDaemonSet returns a DaemonSet as a Workload. Its controller says only in events why it cannot
// create a pod.
func OfDaemonSet(d *appsv1.DaemonSet) Workload {
	w := Workload{Object: d, Observed: status.IsObserved(d.Generation, d.Status.ObservedGeneration), selector: d.Spec.Selector}
	nodes := d.Status.DesiredNumberScheduled
	if missing := nodes - d.Status.CurrentNumberScheduled; missing > 0 {
		w.own = newFinding(&corev1.Pod{}, "PodsMissing", fmt.Sprintf("%d of %d nodes have no pod: a quota, a policy or Pod Security "+
			"may refuse it; the events of the DaemonSet say what (kubectl describe daemonset)", missing, nodes))
		w.own.Count = missing
	}
	return w
}

// read returns what the pods of the current template say. A rollout deletes the others.
func (d *Diagnoser) read(ctx context.Context, s *Subject) (Result, error) {
	namespace := client.InNamespace(s.Owner.GetNamespace())
	selector, err := metav1.LabelSelectorAsSelector(s.Workload.selector)
	if err != nil {
		return Result{}, fmt.Errorf("the selector of the workload: %w", err)
	}
	uid, current, err := d.template(ctx, namespace, s.Workload.Object, selector)
	if err != nil {
		return Result{}, err
	}
	found := s.Workload.newTally()
	more, err := d.pages(ctx, "pods", &corev1.PodList{}, namespace, selector.Add(*current), func(obj client.Object) {
		// A label alone does not say whose a pod is: every user who may create pods may set it.
		if owner := metav1.GetControllerOfNoCopy(obj); owner != nil && owner.UID == uid {
			found.add(ofPod(obj.(*corev1.Pod), d.Clock.Now()))
		}
	})
	result := found.result(d.Clock.Now())
	if more {
		result.Note = fmt.Sprintf("only %d of its pods were read", pageSize*maxPages)
	}
	return result, err
}

// template returns the uid of the owner of the pods with the current template, and their label.
func (d *Diagnoser) template(ctx context.Context, namespace client.InNamespace, w client.Object, selector labels.Selector) (types.UID, *labels.Requirement, error) {
	key, value, uid := labelGeneration, w.GetAnnotations()[appsv1.DeprecatedTemplateGeneration], w.GetUID()
	if _, ok := w.(*appsv1.Deployment); ok {
		key, value, uid = appsv1.DefaultDeploymentUniqueLabelKey, "", ""
		sets, highest := &metav1.PartialObjectMetadataList{}, int64(-1)
		sets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
		if _, err := d.pages(ctx, "ReplicaSets", sets, namespace, selector, func(set client.Object) {
			revision, err := strconv.ParseInt(set.GetAnnotations()[annotationRevision], 10, 64)
			if err == nil && revision > highest && metav1.IsControlledBy(set, w) {
				highest, value, uid = revision, set.GetLabels()[key], set.GetUID()
			}
		}); err != nil {
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
	ctx context.Context, what string, empty client.ObjectList, namespace client.InNamespace, selector labels.Selector, visit func(client.Object),
) (more bool, err error) {
	next := ""
	for range maxPages {
		list := empty.DeepCopyObject().(client.ObjectList) // One that is used again keeps what is not in the next page.
		if err := d.Reader.List(ctx, list, namespace, client.MatchingLabelsSelector{Selector: selector}, client.Limit(pageSize), client.Continue(next)); err != nil {
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

// tally has the problems that were found. Pods with the same reason for one container have one.
type tally map[key]*finding

type key struct{ container, reason string }

// newTally returns the problem that the workload itself has: pods that cannot be created.
func (w Workload) newTally() tally {
	t := tally{}
	t.add(w.own)
	return t
}

// add adds a problem, which may be nil. The message of the first of several is quoted.
func (t tally) add(f *finding) {
	if f == nil {
		return
	}
	k := key{f.Container, f.Reason}
	switch known := t[k]; {
	case known != nil:
		known.Count += f.Count
		known.Since = earliest(known.Since, f.Since)
		known.needsIntervention = known.needsIntervention || f.needsIntervention
	case len(t) < maxFound:
		t[k] = f
	}
}

// result returns the problems: first those that need intervention, then those of most pods.
func (t tally) result(now time.Time) Result {
	all := slices.SortedFunc(maps.Values(t), func(a, b *finding) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Reason, b.Reason))
	})
	result := Result{NeedsIntervention: len(all) > 0 && all[0].needsIntervention}
	for _, f := range all[:min(len(all), maxProblems)] {
		f.Since = metav1.NewTime(f.Since.UTC().Truncate(time.Second))
		if f.Since.After(now) || f.Since.Year() < 1970 {
			f.Since = metav1.Time{} // The clock of another machine is ahead.
		}
		result.Problems = append(result.Problems, f.Problem)
	}
	return result
}

// rank is the place of a problem among others.
func (f *finding) rank() int {
	switch {
	case f.Reason == reasonReplicaFailure:
		return 0
	case f.needsIntervention:
		return 1
	}
	return 2
}

// earliest returns the earlier one of two times; one that is not set does not count.
func earliest(a, b metav1.Time) metav1.Time {
	if a.IsZero() || !b.IsZero() && b.Before(&a) {
		return b
	}
	return a
}
