// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Risk is what is risky about a Deployment. Name is that of what has it: a container, or the object
// of the kind that Type names.
type Risk struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Message string `json:"message"`
}

// ClaimRisk is the type of the risks of claims.
const ClaimRisk = "PersistentVolumeClaim"

// Risks returns what is risky about the pods of a Deployment, and their rollout. modes are the
// access modes of the claims that are known, by name.
func Risks(d *appsv1.Deployment, modes map[string][]string) (out []Risk) {
	pod, replicas := &d.Spec.Template.Spec, ptr.Deref(d.Spec.Replicas, 1)
	needsSpare := replicas > 0 && NeedsSparePod(&d.Spec.Strategy, nil, replicas)
	path := field.NewPath("spec", "template", "spec")
	for i := range pod.InitContainers {
		out = append(out, imageRisk(path.Child("initContainers").Index(i), &pod.InitContainers[i])...)
	}
	for i := range pod.Containers {
		c := &pod.Containers[i]
		out = append(out, imageRisk(path.Child("containers").Index(i), c)...)
		if device := Device(&c.Resources); device != "" && needsSpare {
			out = append(out, Risk{"Rollout", c.Name, "a rollout needs a free " + device + "; set maxSurge: 0 and maxUnavailable: 1"})
		}
		out = append(out, containerRisks(c, pod.Resources != nil)...)
	}
	if d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType && (replicas > 1 || needsSpare) {
		out = append(out, claimRisks(pod.Volumes, modes)...)
	}
	return out
}

func containerRisks(c *corev1.Container, podRequests bool) (out []Risk) {
	if device := LacksSharedMemory(&c.Resources, c.VolumeMounts); device != "" {
		out = append(out, Risk{"SharedMemory", c.Name, "no volume at /dev/shm, so it has 64 MiB; processes that use several " + device + " share more"})
	}
	if quick := quickLiveness(c.LivenessProbe, c.StartupProbe); quick != "" {
		out = append(out, Risk{"LivenessProbe", c.Name, quick + "; add a startupProbe"})
	}
	if len(c.Resources.Requests)+len(c.Resources.Limits) == 0 && !podRequests {
		out = append(out, Risk{"Requests", c.Name, "requests no resources, so it may run on a full node, and is evicted first"})
	}
	return out
}

// claimRisks returns the claims of volumes that pods on several nodes cannot mount.
func claimRisks(volumes []corev1.Volume, modes map[string][]string) (out []Risk) {
	for _, v := range volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		name := v.PersistentVolumeClaim.ClaimName
		if text := ClaimHint(modes[name]); text != "" {
			out = append(out, Risk{ClaimRisk, name, text + "; set type: Recreate"})
		}
	}
	return out
}

// ClaimHint says what a rolling update does with a claim of some access modes, "" if they are not
// known, or pods on several nodes can mount it.
func ClaimHint(modes []string) string {
	if len(modes) == 0 || slices.ContainsFunc(modes, func(mode string) bool { return strings.HasSuffix(mode, "Many") }) {
		return ""
	}
	return "is " + modes[0] + ": in a rolling update, a pod on another node waits for the one before"
}

// BreaksVLLM reports whether a Service of the namespace makes vLLM fail in a pod: Kubernetes sets
// NAME_PORT to the address of each (https://docs.vllm.ai/en/stable/configuration/env_vars).
func BreaksVLLM(service string, pod *corev1.PodSpec) bool {
	return service == "vllm" && ptr.Deref(pod.EnableServiceLinks, true)
}

// ServiceRisk returns what a Service of the namespace does to a Deployment whose image is one of vLLM.
func ServiceRisk(service string, pod *corev1.PodSpec) []Risk {
	isVLLM := slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool { return strings.Contains(c.Image, "vllm") })
	if !isVLLM || !BreaksVLLM(service, pod) {
		return nil
	}
	return []Risk{{"ServiceLinks", service, "sets the variable VLLM_PORT, with which vLLM fails; set enableServiceLinks: false"}}
}

func imageRisk(path *field.Path, c *corev1.Container) []Risk {
	if warning := ImageWarning(path.Child("image"), c.Image, ""); warning != "" {
		return []Risk{{"Image", c.Name, warning}}
	}
	return nil
}
