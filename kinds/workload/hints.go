// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Hints returns what in a valid object is likely to be a mistake of its pods together with its
// children: sentences, each with the path of a field and a way out, short enough for a warning.
func (w *Workload) Hints() []string {
	pod := sync.OnceValue(w.podTemplate) // Most objects have no hint that needs it.
	return slices.Concat(w.rolloutHints(), w.nameHints(pod), w.memoryHints(pod), w.monitoringHints(pod))
}

func (w *Workload) podTemplate() *corev1.PodSpec {
	template, _ := Decode(w.Pods.Template)
	return &cmp.Or(template, &corev1.PodTemplateSpec{}).Spec
}

// isModelBox reports whether the object has the fields rollingUpdate and sharedMemory for a Deployment.
func (w *Workload) isModelBox() bool {
	return w.OwnerKind == modelv1.SchemeGroupVersion.WithKind("ModelBox")
}

// rolloutHints are about a rollout that has to create a pod before it may delete one, while each pod
// needs a device: without a free one, such a rollout does not end.
func (w *Workload) rolloutHints() []string {
	device := rules.Device(&w.Container.Resources)
	if device == "" || !w.needsSparePod() {
		return nil
	}
	out := []string{"spec.strategy: set {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}: a rollout needs a free " + device}
	if len(rules.OneRollout(spec.Child("rollingUpdate"), w.Rollout, &appsv1.DeploymentStrategy{})) > 0 {
		out = append(out, "spec.rollingUpdate: remove it, because it may not be set together with spec.strategy")
	}
	return out
}

// needsSparePod is false as well if the strategy is not known: an adopted App without one keeps that of
// the Deployment.
func (w *Workload) needsSparePod() bool {
	replicas := ptr.Deref(w.Replicas, 1)
	return w.knowsStrategy() && replicas > 0 && rules.NeedsSparePod(w.Strategy, w.Rollout, replicas)
}

func (w *Workload) knowsStrategy() bool {
	return !w.OnNodes && (w.Strategy != nil || w.isModelBox() || !w.adopted())
}

// nameHints are about a Service whose name breaks the server.
func (w *Workload) nameHints(pod func() *corev1.PodSpec) []string {
	if len(w.Ports) == 0 || !rules.BreaksVLLM(w.serviceName(), pod()) {
		return nil
	}
	if w.serviceName() != w.Owner.GetName() {
		return []string{"spec.service.name: vLLM fails with the variable VLLM_PORT of a Service vllm; set enableServiceLinks: false"}
	}
	return []string{"metadata.name: vLLM fails with the variable VLLM_PORT of a Service vllm; use another name"}
}

// memoryHints are about servers that use several devices: their processes share memory, of which a
// container has 64 MiB.
func (w *Workload) memoryHints(pod func() *corev1.PodSpec) []string {
	if w.SharedMemory != nil || rules.LacksSharedMemory(&w.Container.Resources, nil) == "" {
		return nil
	}
	var mounts []corev1.VolumeMount
	for _, c := range pod().Containers {
		mounts = append(mounts, c.VolumeMounts...)
	}
	device := rules.LacksSharedMemory(&w.Container.Resources, mounts)
	switch {
	case device == "":
		return nil
	case !w.isModelBox():
		return []string{"spec.resources: for several " + device + ", mount an emptyDir of medium Memory at /dev/shm, which has 64 MiB"}
	}
	return []string{"spec.sharedMemory: not set, so /dev/shm has 64 MiB; processes that use several " + device + " share more"}
}

// monitoringHints are about a port for metrics that no container lists: Prometheus finds the pods by
// the ports that their containers list, also by a number.
func (w *Workload) monitoringHints(pod func() *corev1.PodSpec) []string {
	if w.Optional == nil {
		return nil
	}
	port, found := w.Optional.MetricsPort()
	lists := func(ports []corev1.ContainerPort) bool {
		return slices.ContainsFunc(ports, func(p corev1.ContainerPort) bool {
			return port == intstr.FromInt32(p.ContainerPort) || port == intstr.FromString(p.Name)
		})
	}
	if !found || lists(w.containerPorts()) {
		return nil
	}
	for _, c := range containers(pod()) {
		if lists(c.Ports) {
			return nil
		}
	}
	return []string{"spec.monitoring.port: no container lists " + port.String() + ", so nothing is scraped; add it to the ports of one"}
}

// ClaimHints returns a sentence for each claim that pods on several nodes cannot mount, while a
// rolling update creates a pod before the one that has it has ended. modes are the access modes of
// the claims that are known, by name. Admission, which reads nothing, knows none.
func (w *Workload) ClaimHints(modes map[string][]string) (out []string) {
	recreates := w.Strategy != nil && w.Strategy.Type == appsv1.RecreateDeploymentStrategyType
	if len(modes) == 0 || !w.knowsStrategy() || recreates || ptr.Deref(w.Replicas, 1) < 2 && !w.needsSparePod() {
		return nil
	}
	hint := func(path, claim string) {
		if text := rules.ClaimHint(modes[claim]); text != "" {
			out = append(out, path+": "+claim+" "+text+"; set spec.strategy: {type: Recreate}")
		}
	}
	for i := range w.Models {
		m := &w.Models[i]
		hint(m.At.String(), cmp.Or(m.From.Claim, m.Claim))
	}
	for i, v := range w.podTemplate().Volumes {
		if v.PersistentVolumeClaim != nil {
			hint(root.Child("spec", "volumes").Index(i).String(), v.PersistentVolumeClaim.ClaimName)
		}
	}
	return out
}
