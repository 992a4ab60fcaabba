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

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// maxProblems is the bound of status.problems.
const maxProblems = 5

// maxExact is up to how many failed pods are counted exactly. If kubelet refuses the pods of a
// ReplicaSet, there may be another one every second.
const maxExact = 10

// Of returns the problems of a workload that is not ready, the worst first, at most 5, and
// whether the first one needs a human: no progress is possible before a change from outside.
// Pods that are not the workload's do not count. It is pure; its result does not depend on
// the order of the pods.
//
// The problems of pods of the newest template come before those of older ones, which a
// rollout deletes. Equal problems of several pods are one. Times and messages are such that
// a pod in the same state has the same problem at each look, however often it was restarted.
func Of(w Workload, pods []corev1.Pod, now time.Time) (_ []modelv1.Problem, human bool) {
	groups := group(w, pods, now)
	all := make([]*finding, 0, len(groups)+1)
	for _, f := range groups {
		all = append(all, f)
	}
	if f := w.own(); f != nil {
		all = append(all, f)
	}
	slices.SortFunc(all, compare)
	all = most(all)
	out := make([]modelv1.Problem, 0, len(all))
	for _, f := range all {
		out = append(out, f.problem(now))
	}
	return out, len(all) > 0 && all[0].human && all[0].newest
}

// key is what equal problems have in common.
type key struct {
	container, reason, message string
	newest                     bool
}

func group(w Workload, pods []corev1.Pod, now time.Time) map[key]*finding {
	groups, newest := map[key]*finding{}, w.newest(pods)
	for i := range pods {
		if !w.owns(&pods[i]) {
			continue
		}
		counted := map[key]bool{} // A pod counts once, whatever its status has twice.
		for _, f := range ofPod(&pods[i], now) {
			f.newest = w.template(&pods[i]) == newest
			k := key{f.Container, f.Reason, f.Message, f.newest}
			if !counted[k] {
				groups[k] = groups[k].with(f)
			}
			counted[k] = true
		}
	}
	return groups
}

// with returns a problem that more pods have. f may be nil.
func (f *finding) with(other *finding) *finding {
	if f == nil {
		return other
	}
	f.Count += other.Count
	f.Since = earliest(f.Since, other.Since)
	f.restarts = max(f.restarts, other.restarts)
	f.human = f.human || other.human
	return f
}

// own returns the problem that the workload itself has: pods that cannot be created.
func (w Workload) own() *finding {
	if w.daemonSet != nil {
		return missing(&w.daemonSet.Status)
	}
	for _, condition := range w.deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			f := newFinding(&corev1.Pod{}, reasonReplicaFailure, clean(condition.Message, ""))
			f.Since, f.Count, f.newest = condition.LastTransitionTime, 0, true
			return f
		}
	}
	return nil
}

// missing returns the problem that pods of a DaemonSet do not exist. The DaemonSet controller
// says why in events only.
func missing(observed *appsv1.DaemonSetStatus) *finding {
	count := observed.DesiredNumberScheduled - observed.CurrentNumberScheduled
	if count <= 0 {
		return nil
	}
	f := newFinding(&corev1.Pod{}, reasonPodsMissing, fmt.Sprintf(
		"%d of %d nodes have no pod: a quota, a policy or Pod Security may refuse it; the events of the DaemonSet say what (kubectl describe daemonset)",
		count, observed.DesiredNumberScheduled))
	f.Count, f.newest = count, true
	return f
}

// compare orders problems, the worst first.
func compare(a, b *finding) int {
	return cmp.Or(
		compareBool(b.newest, a.newest),
		cmp.Compare(a.rank, b.rank),
		compareBool(b.human, a.human),
		cmp.Compare(b.Count, a.Count),
		cmp.Compare(a.Container, b.Container),
		cmp.Compare(a.Reason, b.Reason),
		cmp.Compare(a.Message, b.Message),
	)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// most returns the first problems, at most as many as status may have. If there are more, a
// container and reason that is already there gives way to others: a hundred pods whose
// messages differ must not hide another problem.
func most(sorted []*finding) []*finding {
	if len(sorted) <= maxProblems {
		return sorted
	}
	var first, again []*finding
	seen := map[key]bool{}
	for _, f := range sorted {
		k := key{container: f.Container, reason: f.Reason}
		if seen[k] {
			again = append(again, f)
			continue
		}
		seen[k] = true
		first = append(first, f)
	}
	chosen := append(first, again...)[:maxProblems]
	slices.SortFunc(chosen, compare)
	return chosen
}

// problem returns the problem in the form of status.
func (f *finding) problem(now time.Time) modelv1.Problem {
	p := f.Problem
	if text := restarted(f.restarts); text != "" {
		p.Message += "; " + text
	}
	if f.rank == rankFailed && p.Count > maxExact {
		p.Count = atLeast(p.Count)
	}
	p.Since = metav1.NewTime(p.Since.UTC().Truncate(time.Second))
	if p.Since.After(now) || p.Since.Year() < 1970 {
		p.Since = metav1.Time{} // The clock of another machine is ahead.
	}
	return p
}
