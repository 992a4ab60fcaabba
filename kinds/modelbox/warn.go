// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	appsv1 "k8s.io/api/apps/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

var livenessProbeText = livenessProbePath.String() // For nearly every admission of a box with this probe.

// Warn returns warnings on what in a valid ModelBox is likely to be a mistake, each with
// the path of its field.
func Warn(box *modelv1.ModelBox) []string {
	var out []string
	pods := Pods(box, modelsource.Fetcher{})
	for _, sentence := range [...]string{
		pods.ImageWarning(),
		rules.RolloutWarning(rollingUpdatePath, box.Spec.RollingUpdate, box.Spec.Replicas),
	} {
		if sentence != "" {
			out = append(out, sentence)
		}
	}
	out = append(out, sparePodWarnings(&box.Spec)...)
	if warning, line := rules.LivenessWarning(livenessProbeText, box.Spec.LivenessProbe, box.Spec.StartupProbe); warning != "" {
		out = append(out, warning, line)
	}
	out = append(out, modelWarnings(&box.Spec)...)
	out = append(out, ports.NodePortWarnings(portsPath, box.Spec.Ports)...)
	return append(out, pods.Warnings()...)
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
