// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/podtemplate"
	"github.com/modelbox-operator/modelbox-operator/webhook/ports"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// Warn says what in a ModelBox is allowed and yet likely to surprise, one sentence
// each, with the field's path in front. It is of use for an object that Validate
// accepts.
func Warn(box *modelv1.ModelBox) []string {
	var out []string
	for _, sentence := range [...]string{
		rules.ImageWarning(imagePath, box.Spec.Image),
		rules.RolloutWarning(rollingUpdatePath, box.Spec.RollingUpdate, box.Spec.Replicas),
	} {
		if sentence != "" {
			out = append(out, sentence)
		}
	}
	out = append(out, ports.NodePortWarnings(portsPath, box.Spec.Ports)...)
	return append(out, podtemplate.Warnings(box.Spec.PodTemplate)...)
}
