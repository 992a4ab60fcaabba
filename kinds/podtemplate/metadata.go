// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

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

var (
	podMetadataPath    = spec.Child("podMetadata")
	ownAnnotationsPath = podMetadataPath.Child("annotations")
	annotationsPath    = root.Child("metadata", "annotations")
)

// metadata returns spec.podMetadata, an empty one if there is none.
func (p *Pods) metadata() *modelv1.Metadata { return cmp.Or(p.Metadata, &modelv1.Metadata{}) }

// objectMeta returns the labels and annotations that the object's own fields define.
func (p *Pods) objectMeta() metav1.ObjectMeta {
	own := labels.Merge(p.scheduling().PodLabels, p.metadata().Labels)
	return metav1.ObjectMeta{Labels: labels.Merge(own, p.Labels()), Annotations: maps.Clone(p.metadata().Annotations)}
}

// podMetadata refuses keys of spec.podMetadata that spec.scheduling has too, or the template, which may be nil.
func (p *Pods) podMetadata(template *corev1.PodTemplateSpec) field.ErrorList {
	written, own := cmp.Or(template, &corev1.PodTemplateSpec{}), p.metadata()
	path := podMetadataPath.Child("labels")
	errs := twice(labelsPath, written.Labels, path, own.Labels)
	errs = append(errs, twice(podLabelsPath, p.scheduling().PodLabels, path, own.Labels)...)
	return append(errs, twice(annotationsPath, written.Annotations, ownAnnotationsPath, own.Annotations)...)
}

func twice(path *field.Path, written map[string]string, ownPath *field.Path, own map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if _, ok := written[key]; ok {
			errs = append(errs, inBoth(path.Key(key), ownPath.Key(key).String()))
		}
	}
	return rules.MarkUnbuildable(errs...)
}

// withoutOwnLabels removes the labels of spec.podMetadata from the effective template, because package around
// validates them: Kubernetes' errors of labels do not tell which label they are about. It keeps those that template,
// which may be nil, has as well: the effective value is that of the template.
func (p *Pods) withoutOwnLabels(effective, template *corev1.PodTemplateSpec) {
	written := cmp.Or(template, &corev1.PodTemplateSpec{}).Labels
	for key := range p.metadata().Labels {
		if _, ok := written[key]; !ok {
			delete(effective.Labels, key)
		}
	}
}

// isOwnAnnotation reports whether an error of the annotations of the effective template is about one of
// spec.podMetadata. Those of spec.podTemplate alone are never too long.
func (p *Pods) isOwnAnnotation(err *field.Error) bool {
	for key, value := range p.metadata().Annotations {
		if err.Type == field.ErrorTypeTooLong || text(err.BadValue) == key || text(err.BadValue) == value {
			return true
		}
	}
	return false
}
