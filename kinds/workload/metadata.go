// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// metadata returns spec.podMetadata, an empty one if there is none.
func (p *Pods) metadata() *modelv1.Metadata { return cmp.Or(p.Metadata, &modelv1.Metadata{}) }

// objectMeta returns the labels and annotations that the object's own fields define.
func (p *Pods) objectMeta() metav1.ObjectMeta {
	own := labels.Merge(p.scheduling().PodLabels, p.metadata().Labels)
	return metav1.ObjectMeta{Labels: labels.Merge(own, p.Labels()), Annotations: maps.Clone(p.metadata().Annotations)}
}

// ownMetadata refuses labels of spec.scheduling that the operator sets or selects the pods by, and
// labels and annotations that are in two of spec.scheduling, spec.podMetadata and the template.
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

// withoutOwnLabels removes the labels of spec.podMetadata from the effective template, because
// package children validates them: Kubernetes' errors of labels do not tell which label they are
// about. It keeps those that template has as well: the effective value is that of the template.
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
