// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// labels refuses other values for the labels that the operator sets.
func (p *Pods) labels(path *field.Path, written map[string]string) field.ErrorList {
	ours := p.Labels()
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		if value, ok := written[key]; ok && value != ours[key] {
			errs = append(errs, field.Invalid(path.Key(key), value,
				"may not differ from the operator's value, because selectors use this label; remove it"))
		}
	}
	return rules.MarkUnbuildable(errs...)
}

// maxSelector is the maximum number of labels of a selector.
const maxSelector = 64

// selector refuses a selector that a Deployment cannot have, and one that does not select the pods
// of the template.
func (p *Pods) selector(template *corev1.PodTemplateSpec) field.ErrorList {
	switch {
	case p.MatchLabels != nil && !p.adopted():
		return field.ErrorList{field.Required(selectorPath, "must have a label; remove it if the object does not adopt a Deployment")}
	case len(p.MatchLabels) > maxSelector:
		return rules.MarkUnbuildable(field.TooMany(selectorPath, len(p.MatchLabels), maxSelector))
	}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(p.MatchLabels)) {
		value := p.MatchLabels[key]
		wrong := metav1validation.ValidateLabels(map[string]string{key: value}, selectorPath.Key(key))
		if got, ok := template.Labels[key]; len(wrong) == 0 && (!ok || got != value) {
			wrong = append(wrong, field.Invalid(labelsPath.Key(key), got,
				fmt.Sprintf("must be %q, as in spec.selector, which has to select the pods", value)))
		}
		errs = append(errs, wrong...)
	}
	return rules.MarkUnbuildable(errs...)
}

// SelectorChange returns the error of an update that changes spec.selector.
func SelectorChange(now, was map[string]modelv1.LabelValue) field.ErrorList {
	if maps.Equal(now, was) {
		return nil
	}
	return field.ErrorList{field.Forbidden(selectorPath, "cannot be set, changed or removed after creation, because that of a Deployment cannot")}
}
