// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const (
	// maxProblems and maxNodes are the bounds of status.problems and status.missingNodes.
	maxProblems, maxNodes = 5, 10
	// maxFound bounds the different problems that are held during a read.
	maxFound = 50
	// maxFailed is up to how many failed pods are counted. If kubelet refuses the pods of a
	// ReplicaSet, there may be another one every second.
	maxFailed = 10
)

// finding is a problem of one pod, or of several that have the same.
type finding struct {
	modelv1.Problem
	needsIntervention bool
}

func newFinding(pod *corev1.Pod, reason, message string) *finding {
	return &finding{
		Problem:           modelv1.Problem{Reason: reason, Message: rules.Cut(message, maxMessage), Since: podNotReadySince(pod), Count: 1},
		needsIntervention: needIntervention.Has(reason),
	}
}

// tally collects the problems of pods, one pod after the other.
type tally struct {
	now time.Time
	// current is true for pods of the current template.
	current bool
	found   map[key]*finding
	nodes   sets.Set[string]
}

// key is what equal problems have in common.
type key struct{ container, reason string }

func newTally(now time.Time) *tally {
	return &tally{now: now, found: map[key]*finding{}, nodes: sets.Set[string]{}}
}

// add adds the problem of a pod. Of several pods with the same, the first one's message is quoted.
func (t *tally) add(pod *corev1.Pod) {
	ready := conditionOf(pod, corev1.PodReady)
	if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && (ready == nil || ready.Status != corev1.ConditionTrue) {
		t.nodes.Insert(pod.Spec.NodeName)
	}
	f := ofPod(pod, t.now)
	if f == nil {
		return
	}
	f.needsIntervention = f.needsIntervention && t.current
	k := key{f.Container, f.Reason}
	switch known := t.found[k]; {
	case known != nil:
		known.Since = earliest(known.Since, f.Since)
		known.needsIntervention = known.needsIntervention || f.needsIntervention
		if pod.Status.Phase != corev1.PodFailed || known.Count < maxFailed {
			known.Count++
		}
	case len(t.found) < maxFound:
		t.found[k] = f
	}
}

// result returns the problems: that of the workload itself, then those that need intervention,
// then those of most pods.
func (t *tally) result(w Workload) Result {
	all := make([]*finding, 0, len(t.found)+1)
	for _, f := range t.found {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *finding) int {
		if a.needsIntervention != b.needsIntervention {
			if a.needsIntervention {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Reason, b.Reason))
	})
	switch own := w.own(); {
	case own == nil:
	case own.needsIntervention:
		all = slices.Insert(all, 0, own)
	default:
		all = slices.Insert(all, min(len(all), maxProblems-1), own)
	}
	var out Result
	for _, f := range all[:min(len(all), maxProblems)] {
		f.Since = metav1.NewTime(f.Since.UTC().Truncate(time.Second))
		if f.Since.After(t.now) || f.Since.Year() < 1970 {
			f.Since = metav1.Time{} // The clock of another machine is ahead.
		}
		out.Problems = append(out.Problems, f.Problem)
	}
	out.NeedsIntervention = len(all) > 0 && all[0].needsIntervention
	if nodes := sets.List(t.nodes); w.daemonSet != nil && len(nodes) > 0 {
		out.MissingNodes = nodes[:min(len(nodes), maxNodes)]
	}
	return out
}

// own returns the problem that the workload itself has: pods that cannot be created. The
// DaemonSet controller says why in events only.
func (w Workload) own() *finding {
	if w.daemonSet != nil {
		observed := &w.daemonSet.Status
		count := observed.DesiredNumberScheduled - observed.CurrentNumberScheduled
		if count <= 0 {
			return nil
		}
		f := newFinding(&corev1.Pod{}, reasonPodsMissing, fmt.Sprintf(
			"%d of %d nodes have no pod: a quota, a policy or Pod Security may refuse it; the events of the DaemonSet say what (kubectl describe daemonset)",
			count, observed.DesiredNumberScheduled))
		f.Count = count
		return f
	}
	for _, condition := range w.deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			f := newFinding(&corev1.Pod{}, reasonReplicaFailure, clean(condition.Message))
			f.Since, f.Count = condition.LastTransitionTime, 0
			return f
		}
	}
	return nil
}

// earliest returns the earlier one of two times; one that is not set does not count.
func earliest(a, b metav1.Time) metav1.Time {
	if a.IsZero() || !b.IsZero() && b.Before(&a) {
		return b
	}
	return a
}
