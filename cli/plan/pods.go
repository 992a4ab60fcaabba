// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	daemonutil "k8s.io/kubernetes/pkg/controller/daemon/util"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// Restart is that pods are replaced, because their template changes.
type Restart struct {
	// Pods is their number, of which AtATime are replaced at a time.
	Pods    int32 `json:"pods"`
	AtATime int32 `json:"atATime"`
	// StartsAt is when the window opens for which it waits, nil if it waits for none.
	StartsAt *time.Time `json:"startsAt,omitempty"`
	// Fields are the fields of the object whose changes are the cause.
	Fields []string `json:"fields,omitempty"`
	// SparePods is how many more pods there are during the rollout, and SpareDevices what devices
	// these request together.
	SparePods    int32            `json:"sparePods"`
	SpareDevices map[string]int64 `json:"spareDevices,omitempty"`
}

// Scale is that the number of pods changes. NewDevices are those that the additional pods request.
type Scale struct {
	From       int32            `json:"from"`
	To         int32            `json:"to"`
	NewDevices map[string]int64 `json:"newDevices,omitempty"`
}

// pods returns what happens to the pods of a child, if it has any.
func (c child) pods() (*Restart, *Scale) {
	switch after := c.after.(type) {
	case *appsv1.Deployment:
		before, exists := c.before.(*appsv1.Deployment)
		if !exists {
			before = &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)), Template: after.Spec.Template}}
		}
		return restarted(before, after), scaled(before, after)
	case *appsv1.DaemonSet:
		before, exists := c.before.(*appsv1.DaemonSet)
		if !exists || equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template) {
			return nil, nil
		}
		nodes := before.Status.DesiredNumberScheduled
		unavailable, _ := daemonutil.UnavailableCount(after, int(nodes))                   // Validation refuses what is no number.
		return newRestart(&after.Spec.Template, nodes, 0, max(int32(unavailable), 1)), nil //nolint:gosec // It is at most as large as the field, or the nodes.
	}
	return nil, nil
}

// restarted returns the restart of the pods of a Deployment, nil if their template stays.
func restarted(before, after *appsv1.Deployment) *Restart {
	if equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template) {
		return nil
	}
	surge, unavailable := deploymentutil.MaxSurge(*after), deploymentutil.MaxUnavailable(*after)
	if !deploymentutil.IsRollingUpdate(after) {
		unavailable = *after.Spec.Replicas
	}
	return newRestart(&after.Spec.Template, min(*before.Spec.Replicas, *after.Spec.Replicas), surge, surge+unavailable)
}

func newRestart(template *corev1.PodTemplateSpec, pods, surge, atATime int32) *Restart {
	surge = min(surge, pods)
	return &Restart{Pods: pods, AtATime: min(atATime, pods), SparePods: surge, SpareDevices: devices(template, surge)}
}

// scaled returns the change of the number of pods of a Deployment, nil if it stays.
func scaled(before, after *appsv1.Deployment) *Scale {
	from, to := *before.Spec.Replicas, *after.Spec.Replicas
	if from == to {
		return nil
	}
	return &Scale{From: from, To: to, NewDevices: devices(&after.Spec.Template, max(to-from, 0))}
}

// devices returns the accelerators that some pods request: resources with a slash in their name.
func devices(template *corev1.PodTemplateSpec, pods int32) map[string]int64 {
	pod, out := &corev1.Pod{Spec: *template.Spec.DeepCopy()}, map[string]int64{}
	corev1defaults.SetObjectDefaults_Pod(pod) // What has a limit only is requested.
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			for name := range list[i].Resources.Requests {
				if n := resource.GetResourceRequest(pod, name) * int64(pods); n > 0 && strings.Contains(string(name), "/") {
					out[string(name)] = n
				}
			}
		}
	}
	return out
}
