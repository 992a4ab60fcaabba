// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"cmp"
	"maps"
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

var (
	schedulingPath = spec.Child("scheduling")
	podLabelsPath  = schedulingPath.Child("podLabels")
	labelsPath     = root.Child("metadata", "labels")
)

// The bounds of spec.scheduling that Kubernetes' own validation does not have. They are those of the schema.
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

// scheduled returns the fields of a pod that spec.scheduling sets, none of which the pod template may set.
func (p *Pods) scheduled() []Reserved {
	s := p.scheduling()
	var out []Reserved
	for _, of := range [...]struct {
		name  string
		isSet bool
	}{
		{"nodeSelector", len(s.NodeSelector) > 0},
		{"tolerations", len(s.Tolerations) > 0},
		{"runtimeClassName", s.RuntimeClassName != ""},
		{"priorityClassName", s.PriorityClassName != ""},
		{"schedulerName", s.SchedulerName != ""},
	} {
		if of.isSet {
			out = append(out, Reserved{Field: of.name, Instead: schedulingPath.Child(of.name).String(), Either: true})
		}
	}
	return out
}

// schedulerName refuses a name that is too long: Kubernetes validates none.
func schedulerName(s *modelv1.Scheduling) field.ErrorList {
	if utf8.RuneCountInString(s.SchedulerName) <= maxSchedulerName {
		return nil
	}
	return field.ErrorList{field.TooLongCharacters(schedulingPath.Child("schedulerName"), s.SchedulerName, maxSchedulerName)}
}

// podLabels refuses labels of spec.scheduling that the operator sets or selects the pods by, and those that
// the template has too, which may be nil.
func (p *Pods) podLabels(template *corev1.PodTemplateSpec) field.ErrorList {
	ours, written := p.OwnLabels(), cmp.Or(template, &corev1.PodTemplateSpec{}).Labels
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(p.scheduling().PodLabels)) {
		at := podLabelsPath.Key(key)
		if ours.Has(key) {
			errs = append(errs, field.Forbidden(at, "may not be set, because selectors use this label; remove it"))
		} else if _, twice := written[key]; twice {
			errs = append(errs, inBoth(labelsPath.Key(key), at.String()))
		}
	}
	return rules.MarkUnbuildable(errs...)
}

// isPodLabel reports whether a text is a key or a value of the labels of spec.scheduling.
func (p *Pods) isPodLabel(text string) bool {
	for key, value := range p.scheduling().PodLabels {
		if text == key || text == value {
			return true
		}
	}
	return false
}
