// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// owns reports whether a pod is one of the workload. A label alone does not say so: every
// user who may create pods may give one the labels that the selector matches.
//
// The ReplicaSets of a Deployment are not read. The Deployment controller names each after
// the Deployment and the hash of its pod template, which its pods have as a label, so a pod of
// another ReplicaSet is not taken for one of the Deployment unless that is meant to deceive.
func (w Workload) owns(pod *corev1.Pod) bool {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil || !strings.HasPrefix(controller.APIVersion, appsv1.GroupName+"/") {
		return false
	}
	if w.daemonSet != nil {
		return controller.Kind == "DaemonSet" && controller.UID == w.daemonSet.UID
	}
	hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	return controller.Kind == "ReplicaSet" && hash != "" && controller.Name == w.deployment.Name+"-"+hash
}

// template returns which version of the pod template a pod has.
func (w Workload) template(pod *corev1.Pod) string {
	if w.daemonSet != nil {
		return pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	}
	return pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
}

// newest returns the version of the pod template that the youngest pod has. During a rollout
// it is the one that the object is to run; the pods of the others are deleted.
func (w Workload) newest(pods []corev1.Pod) string {
	var youngest *corev1.Pod
	for i := range pods {
		if pod := &pods[i]; w.owns(pod) && pod.DeletionTimestamp == nil && (youngest == nil || w.younger(pod, youngest)) {
			youngest = pod
		}
	}
	if youngest == nil {
		return ""
	}
	return w.template(youngest)
}

func (w Workload) younger(a, b *corev1.Pod) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return w.template(a) > w.template(b) // In whatever order they were listed.
	}
	return b.CreationTimestamp.Before(&a.CreationTimestamp)
}

func (w Workload) selector() *metav1.LabelSelector {
	if w.daemonSet != nil {
		return w.daemonSet.Spec.Selector
	}
	return w.deployment.Spec.Selector
}
