// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"maps"
	"math"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	kubernetes "k8s.io/kubernetes/pkg/apis/core/validation"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

var (
	metricTypes = []autoscalingv2.MetricSourceType{
		autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType, autoscalingv2.ObjectMetricSourceType,
		autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType,
	}
	targetTypes = []autoscalingv2.MetricTargetType{
		autoscalingv2.AverageValueMetricType, autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType,
	}
)

// source is a source of a metric.
type source struct {
	kind  autoscalingv2.MetricSourceType
	names []name
	*autoscalingv2.MetricTarget
	// oneOf are the fields of the target of which one must be set. Of an Object, both may be.
	oneOf []string
}

// name is a field that names something, and the rule for its value.
type name struct {
	field, value string
	isValid      func(string) []string
}

// metrics returns the errors that Kubernetes returns for the metrics of a HorizontalPodAutoscaler.
// Its own code (k8s.io/kubernetes/pkg/apis/autoscaling/validation) would add 55 packages to the
// programs, among them those of CEL: a test compares the two.
func metrics(at *field.Path, all []autoscalingv2.MetricSpec) field.ErrorList {
	var errs field.ErrorList
	for i := range all {
		errs = append(errs, metric(at.Index(i), &all[i])...)
	}
	return errs
}

// metric validates a source of another type than its own too: to correct type must not make the
// errors of the source new.
func metric(at *field.Path, m *autoscalingv2.MetricSpec) field.ErrorList {
	var errs field.ErrorList
	sources := sourcesOf(m)
	for member, s := range sources {
		errs = append(errs, s.validate(at.Child(member))...)
	}
	if !slices.Contains(metricTypes, m.Type) {
		return rules.Sorted(append(errs, field.NotSupported(at.Child("type"), m.Type, metricTypes)))
	}
	for member, s := range sources {
		if s.kind != m.Type {
			errs = append(errs, field.Forbidden(at.Child(member), "is not the source that type names; remove it, or change type"))
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(sources)), func(s source) bool { return s.kind == m.Type }) {
		errs = append(errs, field.Required(at, "must have the source that type names"))
	}
	return rules.Sorted(errs)
}

// sourcesOf returns the sources that a metric has, by the name of their field. It must have only
// that of its type.
func sourcesOf(m *autoscalingv2.MetricSpec) map[string]source {
	sources := map[string]source{}
	usage, value := []string{"averageUtilization", "averageValue"}, []string{"averageValue", "value"}
	if s := m.ContainerResource; s != nil {
		names := []name{{"container", s.Container, validation.IsDNS1123Label}, {"name", string(s.Name), isContainerResource}}
		sources["containerResource"] = source{autoscalingv2.ContainerResourceMetricSourceType, names, &s.Target, usage}
	}
	if s := m.External; s != nil {
		sources["external"] = source{autoscalingv2.ExternalMetricSourceType, identifier(&s.Metric), &s.Target, value}
	}
	if s := m.Object; s != nil {
		of := &s.DescribedObject
		names := append(identifier(&s.Metric), name{"describedObject.kind", of.Kind, content.IsPathSegmentName},
			name{"describedObject.name", of.Name, content.IsPathSegmentName}, name{"describedObject.apiVersion", of.APIVersion, isAPIVersion})
		sources["object"] = source{autoscalingv2.ObjectMetricSourceType, names, &s.Target, value}
	}
	if s := m.Pods; s != nil {
		sources["pods"] = source{autoscalingv2.PodsMetricSourceType, identifier(&s.Metric), &s.Target, value[:1]}
	}
	if s := m.Resource; s != nil {
		names := []name{{"name", string(s.Name), isAny}}
		sources["resource"] = source{autoscalingv2.ResourceMetricSourceType, names, &s.Target, usage}
	}
	return sources
}

func identifier(m *autoscalingv2.MetricIdentifier) []name {
	return []name{{"metric.name", m.Name, content.IsPathSegmentName}}
}

func isAny(string) []string { return nil }

func isAPIVersion(value string) []string {
	if _, err := schema.ParseGroupVersion(value); err != nil {
		return []string{err.Error()}
	}
	return nil
}

func isContainerResource(value string) []string {
	if errs := kubernetes.ValidateContainerResourceName(core.ResourceName(value), nil); len(errs) > 0 {
		return []string{errs[0].Detail}
	}
	return nil
}

func (s *source) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, n := range s.names {
		if n.value == "" && n.field != "describedObject.apiVersion" {
			errs = append(errs, field.Required(at.Child(n.field), "must be set"))
			continue
		}
		for _, msg := range n.isValid(n.value) {
			errs = append(errs, field.Invalid(at.Child(n.field), n.value, msg))
		}
	}
	at = at.Child("target")
	if !slices.Contains(targetTypes, s.Type) {
		errs = append(errs, field.NotSupported(at.Child("type"), s.Type, targetTypes))
	}
	set := map[string]bool{"averageUtilization": s.AverageUtilization != nil, "averageValue": s.AverageValue != nil, "value": s.Value != nil}
	count := len(slices.DeleteFunc(slices.Clone(s.oneOf), func(member string) bool { return !set[member] }))
	if count == 0 || count > 1 && s.kind != autoscalingv2.ObjectMetricSourceType {
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, "must have one of "+strings.Join(s.oneOf, ", ")))
	}
	for member, quantity := range map[string]*resource.Quantity{"averageValue": s.AverageValue, "value": s.Value} {
		if quantity != nil && quantity.Sign() <= 0 {
			errs = append(errs, field.Invalid(at.Child(member), quantity.String(), "must be greater than 0"))
		}
	}
	return append(errs, rules.Between(at.Child("averageUtilization"), s.AverageUtilization, 1, math.MaxInt32)...)
}
