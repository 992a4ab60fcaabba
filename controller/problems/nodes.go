// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// maxNodes is the bound of status.missingNodes.
const maxNodes = 10

// daemonNodes are the nodes of a DaemonSet's pods.
type daemonNodes struct{ all, ready sets.Set[string] }

// nodesOf returns the nodes that have a pod of the DaemonSet, and those where it is ready. A
// pod that is being deleted does not count.
func (w Workload) nodesOf(pods []corev1.Pod) daemonNodes {
	nodes := daemonNodes{sets.Set[string]{}, sets.Set[string]{}}
	for i := range pods {
		pod := &pods[i]
		node := nodeOf(pod)
		if node == "" || !w.owns(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		nodes.all.Insert(node)
		if isReady(pod) {
			nodes.ready.Insert(node)
		}
	}
	return nodes
}

// nodeOf returns the node that a daemon pod is for. One that is not scheduled yet has it in
// the node affinity that the DaemonSet controller has set.
func nodeOf(pod *corev1.Pod) string {
	affinity := pod.Spec.Affinity
	if pod.Spec.NodeName != "" || affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return pod.Spec.NodeName
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// missing returns the nodes whose pod is not ready, and those of others that have no pod and
// should. They are sorted, and at most 10.
func (n daemonNodes) missing(set *appsv1.DaemonSet, others []corev1.Node) []string {
	missing := n.all.Difference(n.ready)
	template := daemonTemplate(set)
	for i := range others {
		if node := &others[i]; !n.all.Has(node.Name) && shouldRun(template, node) {
			missing.Insert(node.Name)
		}
	}
	names := slices.DeleteFunc(sets.List(missing), func(name string) bool { return len(name) > maxNodeName })
	return names[:min(len(names), maxNodes)]
}

// maxNodeName is the bound of the schema, and that of a node's name.
const maxNodeName = 253

// shouldRun reports whether the DaemonSet controller creates a pod for a node: its labels
// match, and the pod tolerates its taints.
func shouldRun(pod *corev1.Pod, node *corev1.Node) bool {
	matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	_, repelled := schedulinghelpers.FindMatchingUntoleratedTaint(klog.Logger{}, node.Spec.Taints, pod.Spec.Tolerations, func(taint *corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoExecute || taint.Effect == corev1.TaintEffectNoSchedule
	}, false)
	return err == nil && matches && !repelled
}

// daemonTemplate returns a pod of a DaemonSet for scheduling, with the tolerations that the
// DaemonSet controller adds.
func daemonTemplate(set *appsv1.DaemonSet) *corev1.Pod {
	spec := &set.Spec.Template.Spec
	tolerations := slices.Clone(spec.Tolerations)
	tolerate := func(effect corev1.TaintEffect, keys ...string) {
		for _, key := range keys {
			tolerations = append(tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
		}
	}
	tolerate(corev1.TaintEffectNoExecute, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable)
	tolerate(corev1.TaintEffectNoSchedule, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure,
		corev1.TaintNodeUnschedulable)
	if spec.HostNetwork {
		tolerate(corev1.TaintEffectNoSchedule, corev1.TaintNodeNetworkUnavailable)
	}
	return &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: tolerations}}
}
