// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
)

// Restart is that pods are replaced, because their template changes.
type Restart struct {
	// Pods is their number, of which AtATime are replaced at a time.
	Pods    int32 `json:"pods"`
	AtATime int32 `json:"atATime"`
	// Fields are the fields of the object whose changes are the cause.
	Fields []string `json:"fields,omitempty"`
	// SparePods is how many more pods there are during the rollout, and SpareDevices what devices these
	// request together.
	SparePods    int32            `json:"sparePods"`
	SpareDevices map[string]int64 `json:"spareDevices,omitempty"`
}

// Scale is that the number of pods changes. NewDevices are those that the additional pods request.
type Scale struct {
	From       int32            `json:"from"`
	To         int32            `json:"to"`
	NewDevices map[string]int64 `json:"newDevices,omitempty"`
}

// pods sets what happens to the pods of a child, if it has any.
func (o *Object) pods(c child, sizes modelbox.Sizes) {
	switch after := c.after.(type) {
	case *appsv1.Deployment:
		before, _ := c.before.(*appsv1.Deployment)
		before = cmp.Or(before, &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(0))}})
		from, to := *before.Spec.Replicas, *after.Spec.Replicas
		if from != to {
			o.Scale = &Scale{From: from, To: to, NewDevices: devices(&after.Spec.Template, max(to-from, 0))}
		}
		if c.before != nil && !equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template) {
			if after.Spec.Paused {
				o.Notes = append(o.Notes, "the Deployment is paused: no pod restarts before kubectl rollout resume")
			}
			surge, unavailable := steps(&after.Spec.Strategy, to)
			o.restart(sizes, &after.Spec.Template, min(from, to), surge, surge+unavailable)
		}
	case *appsv1.DaemonSet:
		before, _ := c.before.(*appsv1.DaemonSet)
		if before != nil && !equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template) {
			nodes := after.Status.DesiredNumberScheduled
			o.restart(sizes, &after.Spec.Template, nodes, 0, max(scaled(after.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable, nodes, true), 1))
		}
	}
}

func (o *Object) restart(sizes modelbox.Sizes, template *corev1.PodTemplateSpec, pods, surge, atATime int32) {
	surge = min(surge, pods)
	o.Restart = &Restart{
		Pods: pods, AtATime: min(atATime, pods), Fields: o.causes(sizes), SparePods: surge, SpareDevices: devices(template, surge),
	}
}

// steps returns maxSurge and maxUnavailable in pods, as the Deployment controller resolves them
// (ResolveFenceposts in k8s.io/kubernetes/pkg/controller/deployment/util).
func steps(strategy *appsv1.DeploymentStrategy, replicas int32) (surge, unavailable int32) {
	if strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return 0, replicas
	}
	surge = scaled(strategy.RollingUpdate.MaxSurge, replicas, true)
	unavailable = min(scaled(strategy.RollingUpdate.MaxUnavailable, replicas, false), replicas)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func scaled(step *intstr.IntOrString, total int32, roundUp bool) int32 {
	n, _ := intstr.GetScaledValueFromIntOrPercent(step, int(total), roundUp) // Validation refuses other texts.
	return int32(n)                                                          //nolint:gosec // It is at most as large as the field, or the total.
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
