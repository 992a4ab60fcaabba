// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const (
	// maxContainer is the bound of the schema, and that of a container's name.
	maxContainer = 63
	// maxContainers bounds what is read of one pod. Clients who may write the status of pods
	// may write any number of container statuses.
	maxContainers = 64
	// overdue is how long after its grace period a pod may exist. kubelet and the API server
	// need some seconds.
	overdue = 30 * time.Second
	// briefly is how long a pod may be unschedulable before a human is needed: during a rollout,
	// what it needs is often that of a pod that is being deleted.
	briefly = 30 * time.Second
)

// finding is a problem of one pod, or of several that have the same.
type finding struct {
	modelv1.Problem
	class
	// restarts is the highest restart count.
	restarts int32
	// newest is true for a pod of the newest template.
	newest bool
}

func newFinding(pod *corev1.Pod, reason, message string) *finding {
	return &finding{
		Problem: modelv1.Problem{Reason: reason, Message: rules.Cut(message, maxMessage-maxRestarts), Since: notReadySince(pod), Count: 1},
		class:   classOf(reason),
	}
}

// ofPod returns the problems of one pod.
func ofPod(pod *corev1.Pod, now time.Time) []*finding {
	switch {
	case pod.DeletionTimestamp != nil:
		return one(notDeleted(pod, now))
	case pod.Status.Phase == corev1.PodFailed:
		return one(failed(pod))
	case pod.Status.Phase == corev1.PodSucceeded:
		return nil
	}
	if f, scheduled := notScheduled(pod, now); !scheduled {
		return one(f)
	}
	if found := ofContainers(pod, now); len(found) > 0 {
		return found
	}
	return one(notReady(pod, now))
}

func one(f *finding) []*finding {
	if f == nil {
		return nil
	}
	return []*finding{f}
}

func ofContainers(pod *corev1.Pod, now time.Time) []*finding {
	var found []*finding
	add := func(statuses []corev1.ContainerStatus, specs []corev1.Container, init bool) {
		for i := range statuses[:min(len(statuses), maxContainers)] {
			c := &container{pod: pod, spec: named(specs, statuses[i].Name), status: &statuses[i], init: init, now: now}
			if f := c.problem(); f != nil {
				found = append(found, f)
			}
		}
	}
	add(pod.Status.InitContainerStatuses, pod.Spec.InitContainers, true)
	add(pod.Status.ContainerStatuses, pod.Spec.Containers, false)
	return found
}

func named(specs []corev1.Container, name string) *corev1.Container {
	for i := range specs {
		if specs[i].Name == name {
			return &specs[i]
		}
	}
	return nil
}

// notDeleted returns the problem of a pod that should not exist any more. The API server sets
// the deletion timestamp to the end of the grace period.
func notDeleted(pod *corev1.Pod, now time.Time) *finding {
	if now.Sub(pod.DeletionTimestamp.Time) < overdue {
		return nil
	}
	message := "the pod is still there after its grace period; its node may be down: kubelet has to confirm that the containers have ended"
	if len(pod.Finalizers) > 0 {
		message = "the pod is still there after its grace period, because of its finalizer " + clean(pod.Finalizers[0], pod.Name)
	}
	f := newFinding(pod, reasonPodNotDeleted, message)
	f.Since = *pod.DeletionTimestamp
	return f
}

// failed returns the problem of a pod that has failed as a whole: evicted, preempted, refused
// by kubelet. It is replaced, but its reason may be that of its successors as well.
func failed(pod *corev1.Pod) *finding {
	message := pod.Status.Message
	for i := range pod.Status.ContainerStatuses[:min(len(pod.Status.ContainerStatuses), maxContainers)] {
		if last := pod.Status.ContainerStatuses[i].State.Terminated; message == "" && last != nil {
			message = exitOf(last)
		}
	}
	f := newFinding(pod, reasonOr(pod.Status.Reason, reasonPodFailed), clean(message, pod.Name))
	f.class = class{rank: rankFailed}
	return f
}

// notScheduled returns the problem of a pod that has no node, and false, or true if it has
// one.
func notScheduled(pod *corev1.Pod, now time.Time) (f *finding, scheduled bool) {
	condition := conditionOf(pod, corev1.PodScheduled)
	switch {
	case pod.Spec.NodeName != "":
		return nil, true
	case condition == nil || condition.Status != corev1.ConditionFalse:
		if now.Sub(pod.CreationTimestamp.Time) < longCreation {
			return nil, false
		}
		return newFinding(pod, reasonPending, "no scheduler has placed the pod: check that kube-scheduler runs, and schedulerName"), false
	}
	f = newFinding(pod, reasonOr(condition.Reason, reasonPending), clean(condition.Message, pod.Name))
	f.Since = condition.LastTransitionTime
	f.human = f.human && now.Sub(condition.LastTransitionTime.Time) >= briefly
	return f, false
}

// notReady returns the problem of a pod with a node whose containers have none.
func notReady(pod *corev1.Pod, now time.Time) *finding {
	ready := conditionOf(pod, corev1.PodReady)
	started := earliest(ptr.Deref(pod.Status.StartTime, metav1.Time{}), pod.CreationTimestamp)
	switch {
	case len(pod.Status.ContainerStatuses) == 0 && now.Sub(started.Time) >= longCreation:
		return newFinding(pod, reasonPending, "kubelet has not started the pod: check that its node is ready")
	case ready == nil || ready.Status == corev1.ConditionTrue || !allReady(pod):
		return nil
	case len(pod.Spec.ReadinessGates) > 0:
		return newFinding(pod, reasonOr(ready.Reason, reasonPodNotReady), clean(ready.Message, pod.Name))
	}
	return newFinding(pod, reasonPodNotReady, "all containers are ready and the pod is not; kubelet may not report any more: check that its node is ready")
}

func allReady(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if !pod.Status.ContainerStatuses[i].Ready {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}

func isReady(pod *corev1.Pod) bool {
	ready := conditionOf(pod, corev1.PodReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// notReadySince returns since when a pod has not been ready. It does not change when a
// container that never becomes ready is restarted.
func notReadySince(pod *corev1.Pod) metav1.Time {
	if ready := conditionOf(pod, corev1.PodReady); ready != nil && ready.Status != corev1.ConditionTrue && !ready.LastTransitionTime.IsZero() {
		return ready.LastTransitionTime
	}
	return pod.CreationTimestamp
}

// earliest returns the earlier one of two times; one that is not set does not count.
func earliest(a, b metav1.Time) metav1.Time {
	if a.IsZero() || !b.IsZero() && b.Before(&a) {
		return b
	}
	return a
}
