// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Warn returns warnings on what in a valid ModelBox is likely to be a mistake, each with
// the path of its field.
func Warn(box *modelv1.ModelBox) []string {
	var out []string
	if sentence := rules.RolloutWarning(rollingUpdatePath, box.Spec.RollingUpdate, box.Spec.Replicas); sentence != "" {
		out = append(out, sentence)
	}
	w := Workload(box, models.Fetcher{})
	out = append(out, w.Hints()...)
	if warning, line := rules.LivenessWarning(livenessProbePath.String(), box.Spec.LivenessProbe, box.Spec.StartupProbe); warning != "" {
		out = append(out, warning, line)
	}
	out = append(out, modelWarnings(&box.Spec)...)
	out = append(out, ports.NodePortWarnings(portsPath, box.Spec.Ports)...)
	out = append(out, children.Warn(spec, w.Optional)...)
	return append(out, w.Warnings()...)
}
