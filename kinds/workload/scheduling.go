// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// The bounds of spec.scheduling that Kubernetes' own validation does not have. They are those of
// the schema.
const (
	maxScheduling    = 64  // items of nodeSelector, of tolerations, and of podLabels
	maxSchedulerName = 253 // characters
)

// scheduling returns spec.scheduling, an empty one if there is none.
func (p *Pods) scheduling() *modelv1.Scheduling {
	return cmp.Or(p.Scheduling, &modelv1.Scheduling{})
}

// schedule sets the fields of a pod that spec.scheduling has.
func (p *Pods) schedule(pod *corev1.PodSpec) {
	s := p.scheduling()
	pod.NodeSelector, pod.Tolerations = s.NodeSelector, s.Tolerations
	pod.PriorityClassName, pod.SchedulerName = s.PriorityClassName, s.SchedulerName
	if s.RuntimeClassName != "" {
		pod.RuntimeClassName = &s.RuntimeClassName
	}
}

// schedulerName refuses a name that is too long: Kubernetes validates none.
func schedulerName(s *modelv1.Scheduling) field.ErrorList {
	if utf8.RuneCountInString(s.SchedulerName) <= maxSchedulerName {
		return nil
	}
	return field.ErrorList{field.TooLongCharacters(schedulingPath.Child("schedulerName"), s.SchedulerName, maxSchedulerName)}
}
