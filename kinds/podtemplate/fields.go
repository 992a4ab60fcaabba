// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"cmp"
	"maps"
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

var (
	schedulingPath     = spec.Child("scheduling")
	podLabelsPath      = schedulingPath.Child("podLabels")
	ownLabelsPath      = spec.Child("podMetadata", "labels")
	ownAnnotationsPath = spec.Child("podMetadata", "annotations")
	labelsPath         = root.Child("metadata", "labels")
	annotationsPath    = root.Child("metadata", "annotations")
)

// podFields are the fields of a pod that have a field of their own in the object.
var podFields = []Reserved{
	{Field: "imagePullSecrets", Instead: "spec.imagePullSecrets", Either: true},
	{Field: "terminationGracePeriodSeconds", Instead: "spec.terminationGracePeriodSeconds", Either: true},
	{Field: "nodeSelector", Instead: "spec.scheduling.nodeSelector", Either: true},
	{Field: "tolerations", Instead: "spec.scheduling.tolerations", Either: true},
	{Field: "runtimeClassName", Instead: "spec.scheduling.runtimeClassName", Either: true},
	{Field: "priorityClassName", Instead: "spec.scheduling.priorityClassName", Either: true},
	{Field: "schedulerName", Instead: "spec.scheduling.schedulerName", Either: true},
}

// The bounds of spec.scheduling that Kubernetes' own validation does not have. They are those of the schema.
const (
	maxScheduling    = 64  // items of nodeSelector, of tolerations, and of podLabels
	maxSchedulerName = 253 // characters
)

// scheduling returns spec.scheduling, an empty one if there is none.
func (p *Pods) scheduling() *modelv1.Scheduling {
	return cmp.Or(p.Scheduling, &modelv1.Scheduling{})
}

// metadata returns spec.podMetadata, an empty one if there is none.
func (p *Pods) metadata() *modelv1.Metadata { return cmp.Or(p.Metadata, &modelv1.Metadata{}) }

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

// objectMeta returns the labels and annotations that the object's own fields define.
func (p *Pods) objectMeta() metav1.ObjectMeta {
	own := labels.Merge(p.scheduling().PodLabels, p.metadata().Labels)
	return metav1.ObjectMeta{Labels: labels.Merge(own, p.Labels()), Annotations: maps.Clone(p.metadata().Annotations)}
}

// ownMetadata refuses labels of spec.scheduling that the operator sets or selects the pods by, and labels and
// annotations that are in two of spec.scheduling, spec.podMetadata and the template.
func (p *Pods) ownMetadata(template *corev1.PodTemplateSpec) field.ErrorList {
	own, ours := p.metadata(), p.OwnLabels()
	var errs field.ErrorList
	others := labels.Set{}
	for _, key := range slices.Sorted(maps.Keys(p.scheduling().PodLabels)) {
		if ours.Has(key) {
			errs = append(errs, field.Forbidden(podLabelsPath.Key(key), "may not be set, because selectors use this label; remove it"))
		} else {
			others[key] = ""
		}
	}
	errs = append(errs, twice(labelsPath, template.Labels, podLabelsPath, others)...)
	errs = append(errs, twice(labelsPath, template.Labels, ownLabelsPath, own.Labels)...)
	errs = append(errs, twice(podLabelsPath, p.scheduling().PodLabels, ownLabelsPath, own.Labels)...)
	errs = append(errs, twice(annotationsPath, template.Annotations, ownAnnotationsPath, own.Annotations)...)
	return rules.MarkUnbuildable(errs...)
}

func twice(path *field.Path, written map[string]string, ownPath *field.Path, own map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if _, ok := written[key]; ok {
			errs = append(errs, inBoth(path.Key(key), ownPath.Key(key).String()))
		}
	}
	return errs
}

// withoutOwnLabels removes the labels of spec.podMetadata from the effective template, because package around
// validates them: Kubernetes' errors of labels do not tell which label they are about. It keeps those that template
// has as well: the effective value is that of the template.
func (p *Pods) withoutOwnLabels(effective, template *corev1.PodTemplateSpec) {
	for key := range p.metadata().Labels {
		if _, ok := template.Labels[key]; !ok {
			delete(effective.Labels, key)
		}
	}
}

// has reports whether a text is a key or a value of labels or annotations.
func has(of map[string]string, text string) bool {
	for key, value := range of {
		if text == key || text == value {
			return true
		}
	}
	return false
}
