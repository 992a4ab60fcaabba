// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

var autoscaling = Block{
	Field:    "autoscaling",
	Kind:     autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
	Type:     &autoscalingv2.HorizontalPodAutoscaler{},
	Shared:   true,
	Desired:  horizontalPodAutoscaler,
	Validate: validateAutoscaling,
	Report:   reportAutoscaler,
	Warn:     warnAutoscaling,
	Note:     func(o *Object) string { return o.sleeps() },
}

// horizontalPodAutoscaler returns nil with a query of Prometheus, by which KEDA scales.
func horizontalPodAutoscaler(o *Object) kinds.Object {
	a := o.Autoscaling
	if a == nil || a.Prometheus != nil {
		return nil
	}
	return &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: autoscalingv2.SchemeGroupVersion.String(), Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: o.Meta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: o.Owner.GroupVersion().String(), Kind: o.Owner.Kind, Name: o.Meta.Name,
			},
			MinReplicas: new(ptr.Deref(a.MinReplicas, 1)),
			MaxReplicas: a.MaxReplicas,
			Metrics:     metricsOf(a),
			Behavior:    behaviorOf(a),
		},
	}
}

// metricsOf returns the metrics, or the default of Kubernetes
// (SetDefaults_HorizontalPodAutoscaler): as a part of the desired state it is kept like the others.
func metricsOf(a *modelv1.Autoscaling) []autoscalingv2.MetricSpec {
	if len(a.Metrics) > 0 {
		return a.Metrics
	}
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))}
	return []autoscalingv2.MetricSpec{{
		Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: target},
	}}
}

// validateAutoscaling validates what both autoscalers have.
func validateAutoscaling(path *field.Path, o *Object) field.ErrorList {
	a := o.Autoscaling
	if a == nil {
		return nil
	}
	minimum, minPath := ptr.Deref(a.MinReplicas, 1), path.Child("minReplicas")
	errs := rules.Between(minPath, a.MinReplicas, 0, modelv1.MaxReplicas)
	errs = append(errs, rules.Between(path.Child("maxReplicas"), &a.MaxReplicas, 1, modelv1.MaxReplicas)...)
	if minimum > a.MaxReplicas && a.MaxReplicas > 0 { // Otherwise a correct minimum would have a new error.
		errs = append(errs, field.Invalid(minPath, minimum, "must be less than or equal to maxReplicas"))
	}
	if minimum == 0 && a.Prometheus == nil {
		errs = append(errs, field.Invalid(minPath, minimum, "only KEDA scales to zero replicas; set prometheus as well, or at least 1"))
	}
	if o.Scheduled {
		errs = append(errs, field.Forbidden(path, "may not be set together with schedules, because both set replicas; remove one of them"))
	}
	errs = append(errs, behavior(path.Child("behavior"), a.Behavior)...)
	switch at := path.Child("metrics"); {
	case len(a.Metrics) > modelv1.MaxMetrics:
		errs = append(errs, field.TooMany(at, len(a.Metrics), modelv1.MaxMetrics))
	case len(a.Metrics) > 0 && a.Prometheus != nil:
		errs = append(errs, field.Forbidden(at, "may not be set together with prometheus; remove one of them"))
	default:
		errs = append(errs, metrics(at, a.Metrics)...)
	}
	return errs
}

// reportAutoscaler reports why a HorizontalPodAutoscaler does not scale.
func reportAutoscaler(live kinds.Object) string {
	for _, c := range live.(*autoscalingv2.HorizontalPodAutoscaler).Status.Conditions {
		if c.Status == corev1.ConditionFalse && slices.Contains([]autoscalingv2.HorizontalPodAutoscalerConditionType{
			autoscalingv2.AbleToScale, autoscalingv2.ScalingActive,
		}, c.Type) {
			return fmt.Sprintf("HorizontalPodAutoscaler %q: %s is False (%.100s): %.300s", live.GetName(), c.Type, c.Reason, c.Message)
		}
	}
	return ""
}

func warnAutoscaling(path *field.Path, o *Object) []string {
	if sentence := o.sleeps(); sentence != "" {
		return append(warnRequests(path, o), path.String()+": "+sentence)
	}
	return warnRequests(path, o)
}

// warnRequests warns of a percentage of a resource that the main container does not request: the
// autoscaler would not scale.
func warnRequests(path *field.Path, o *Object) []string {
	if o.Autoscaling == nil || o.Autoscaling.Prometheus != nil {
		return nil
	}
	for _, m := range metricsOf(o.Autoscaling) {
		if m.Resource == nil || m.Resource.Target.AverageUtilization == nil {
			continue
		}
		name := m.Resource.Name
		_, limited := o.Resources.Limits[name] // The default of a request.
		if _, requested := o.Resources.Requests[name]; !requested && !limited {
			return []string{fmt.Sprintf("%s: a percentage of %s needs a request of it in each container, see spec.resources", path, name)}
		}
	}
	return nil
}
