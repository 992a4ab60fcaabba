// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// Warn returns warnings on what in a valid ModelBox is likely to be a mistake, each with
// the path of its field.
func Warn(box *modelv1.ModelBox) []string {
	var out []string
	if sentence := rules.RolloutWarning(rollingUpdatePath, box.Spec.RollingUpdate, box.Spec.Replicas); sentence != "" {
		out = append(out, sentence)
	}
	out = append(out, sparePodWarnings(&box.Spec)...)
	out = append(out, serverWarnings(box)...)
	if warning, line := rules.LivenessWarning(livenessProbePath.String(), box.Spec.LivenessProbe, box.Spec.StartupProbe); warning != "" {
		out = append(out, warning, line)
	}
	out = append(out, modelWarnings(&box.Spec)...)
	out = append(out, ports.NodePortWarnings(portsPath, box.Spec.Ports)...)
	out = append(out, children.Warn(spec, OptionalChildren(box))...)
	return append(out, Pods(box, models.Fetcher{}).Warnings()...)
}

// sparePodWarnings returns warnings if a rollout has to create a pod before it may delete one,
// and each pod needs a device: without a free one, such a rollout does not end.
func sparePodWarnings(spec *modelv1.ModelBoxSpec) []string {
	device := rules.Device(spec.Resources)
	if device == "" || spec.Replicas == nil || *spec.Replicas <= 0 || !rules.NeedsSparePod(spec.Strategy, spec.RollingUpdate, *spec.Replicas) {
		return nil
	}
	out := []string{strategyPath.String() + ": set {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}: a rollout needs a free " + device}
	if len(rules.OneRollout(rollingUpdatePath, spec.RollingUpdate, &appsv1.DeploymentStrategy{})) > 0 {
		out = append(out, rollingUpdatePath.String()+": remove it, because it may not be set together with spec.strategy")
	}
	return out
}

// serverWarnings returns warnings on what model servers need of their pods: those that use several devices, memory that their processes
// share, which is 64 MiB without spec.sharedMemory; and vLLM, that no Service has its name, because Kubernetes sets NAME_PORT to the
// address of each Service of the namespace (https://docs.vllm.ai/en/stable/configuration/env_vars).
func serverWarnings(box *modelv1.ModelBox) (out []string) {
	named, device := box.Name == "vllm" && len(box.Spec.Ports) > 0, ""
	if box.Spec.SharedMemory == nil {
		device = rules.LacksSharedMemory(box.Spec.Resources, nil)
	}
	if !named && device == "" {
		return nil // Most objects: the pod template is not decoded for them.
	}
	template, _ := workload.Decode(box.Spec.PodTemplate)
	pods := ptr.Deref(template, corev1.PodTemplateSpec{}).Spec
	if named && ptr.Deref(pods.EnableServiceLinks, true) {
		out = append(out, "metadata.name: vLLM fails with the variable VLLM_PORT of a Service vllm; use another name")
	}
	var mounts []corev1.VolumeMount
	for _, c := range pods.Containers {
		mounts = append(mounts, c.VolumeMounts...)
	}
	if device != "" && rules.LacksSharedMemory(box.Spec.Resources, mounts) != "" {
		out = append(out, sharedMemoryPath.String()+": not set, so /dev/shm has 64 MiB; processes that use several "+device+" share more")
	}
	return out
}
