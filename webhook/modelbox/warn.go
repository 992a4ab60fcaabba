// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/podtemplate"
	"github.com/modelbox-operator/modelbox-operator/webhook/ports"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// Warn returns warnings on what in a valid ModelBox is likely to be a mistake, each with
// the path of its field.
func Warn(box *modelv1.ModelBox) []string {
	var out []string
	of := owner(box, nil)
	for _, sentence := range [...]string{
		podtemplate.ImageWarning(box.Spec.PodTemplate, &of.Main),
		rules.RolloutWarning(rollingUpdatePath, box.Spec.RollingUpdate, box.Spec.Replicas),
	} {
		if sentence != "" {
			out = append(out, sentence)
		}
	}
	out = append(out, ports.NodePortWarnings(portsPath, box.Spec.Ports)...)
	return append(out, podtemplate.Warnings(box.Spec.PodTemplate)...)
}
