// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// onNodes restricts the pods to the nodes that have a label. The terms of a node selector
// are alternatives, so each of those that podTemplate contains requires the label.
func onNodes(pod *corev1.PodSpec, label string) {
	if label == "" {
		return
	}
	pod.Affinity = cmp.Or(pod.Affinity, &corev1.Affinity{})
	pod.Affinity.NodeAffinity = cmp.Or(pod.Affinity.NodeAffinity, &corev1.NodeAffinity{})
	nodes := pod.Affinity.NodeAffinity
	if nodes.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		nodes.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	terms := nodes.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = append(terms[i].MatchExpressions, requirement(label))
	}
}

// requirement returns the node selector requirement for spec.label: "key" matches any value,
// "key=value" only that value.
func requirement(label string) corev1.NodeSelectorRequirement {
	key, value, found := strings.Cut(label, "=")
	if !found {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists}
	}
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
}
