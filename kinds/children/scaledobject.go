// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

var scaledObjectKind = schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}

var scaledObject = Block{
	Field:    "autoscaling.prometheus",
	Kind:     scaledObjectKind,
	Provider: "KEDA",
	Desired:  scaledObjectOf,
	Validate: validatePrometheus,
	Report:   reportScaledObject,
}

// scaledObjectOf returns nil without a query of Prometheus.
func scaledObjectOf(o *Object) kinds.Object {
	if !o.asksPrometheus() {
		return nil
	}
	a := o.Autoscaling
	spec := map[string]any{
		"scaleTargetRef":  map[string]any{"apiVersion": o.Owner.GroupVersion().String(), "kind": o.Owner.Kind, "name": o.Meta.Name},
		"minReplicaCount": int64(ptr.Deref(a.MinReplicas, 1)),
		"maxReplicaCount": int64(a.MaxReplicas),
		"triggers":        triggers(a.Prometheus),
	}
	setNumber(spec, "cooldownPeriod", a.Prometheus.CooldownSeconds)
	setNumber(spec, "idleReplicaCount", a.Prometheus.IdleReplicas)
	if b := behaviorOf(a); b != nil {
		tree, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(b) // All of its fields are of JSON.
		spec["advanced"] = map[string]any{"horizontalPodAutoscalerConfig": map[string]any{"behavior": tree}}
	}
	return o.unstructured(scaledObjectKind, spec)
}

func setNumber(in map[string]any, key string, number *int32) {
	if number != nil {
		in[key] = int64(*number)
	}
}

// triggers returns a trigger for each query.
func triggers(p *modelv1.PrometheusQuery) []any {
	trigger := func(address, query string, target resource.Quantity) any {
		return map[string]any{"type": "prometheus", "metadata": map[string]any{
			"serverAddress": address,
			"query":         query,
			// KEDA reads no suffixes such as m.
			"threshold": strconv.FormatFloat(target.AsApproximateFloat64(), 'f', -1, 64),
			// KEDA's default takes no data as 0, and would remove replicas when Prometheus has
			// none.
			"ignoreNullValues": "false",
		}}
	}
	out := []any{trigger(p.ServerAddress, p.Query, p.Target)}
	for _, q := range p.AdditionalQueries {
		out = append(out, trigger(cmp.Or(q.ServerAddress, p.ServerAddress), q.Query, q.Target))
	}
	return out
}

func (o *Object) asksPrometheus() bool {
	return o.Autoscaling != nil && o.Autoscaling.Prometheus != nil
}

// OwnsAutoscaler reports whether a HorizontalPodAutoscaler with this controller reference is one
// that KEDA makes for the ScaledObject of an object. It has another name.
func (o *Object) OwnsAutoscaler(controller *metav1.OwnerReference) bool {
	return o.asksPrometheus() && controller != nil && controller.Name == o.Meta.Name &&
		schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind() == scaledObjectKind.GroupKind()
}

func validatePrometheus(path *field.Path, o *Object) field.ErrorList {
	if !o.asksPrometheus() {
		return nil
	}
	p := o.Autoscaling.Prometheus
	errs := validateAddress(path.Child("serverAddress"), p.ServerAddress)
	errs = append(errs, validateQuery(path, p.Query, p.Target)...)
	errs = append(errs, validateIdle(path, o.Autoscaling)...)
	further := path.Child("additionalQueries")
	if n := len(p.AdditionalQueries); n > modelv1.MaxAdditionalQueries {
		return append(errs, field.TooMany(further, n, modelv1.MaxAdditionalQueries))
	}
	for i, q := range p.AdditionalQueries {
		if q.ServerAddress != "" {
			errs = append(errs, validateAddress(further.Index(i).Child("serverAddress"), q.ServerAddress)...)
		}
		errs = append(errs, validateQuery(further.Index(i), q.Query, q.Target)...)
	}
	return errs
}

func validateAddress(at *field.Path, text string) field.ErrorList {
	address, err := url.Parse(text)
	switch {
	case len(text) > modelv1.MaxServerAddress:
		return field.ErrorList{field.TooLong(at, "", modelv1.MaxServerAddress)}
	case err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" || strings.ContainsAny(text, " \t\n"):
		return field.ErrorList{field.Invalid(at, text, "must be a URL, such as http://prometheus-operated.monitoring.svc:9090")}
	}
	return nil
}

func validateQuery(path *field.Path, query string, target resource.Quantity) (errs field.ErrorList) {
	switch at := path.Child("query"); {
	case query == "":
		errs = append(errs, field.Required(at, "must be a query whose result is one number"))
	case len(query) > modelv1.MaxQuery:
		errs = append(errs, field.TooLong(at, "", modelv1.MaxQuery))
	}
	if target.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("target"), target.String(), "must be greater than 0"))
	}
	return errs
}

// validateIdle validates what is about the last replica.
func validateIdle(path *field.Path, a *modelv1.Autoscaling) field.ErrorList {
	seconds, idle, toZero := a.Prometheus.CooldownSeconds, a.Prometheus.IdleReplicas, ptr.Deref(a.MinReplicas, 1) <= 0
	errs := rules.Between(path.Child("cooldownSeconds"), seconds, 0, modelv1.MaxCooldownSeconds)
	if seconds != nil && idle == nil && !toZero {
		errs = append(errs, field.Forbidden(path.Child("cooldownSeconds"),
			"only with minReplicas 0 or idleReplicas does KEDA remove the last replica; set one of them as well, or remove cooldownSeconds"))
	}
	switch at := path.Child("idleReplicas"); {
	case idle == nil:
	case *idle != 0:
		errs = append(errs, field.Invalid(at, *idle, "must be 0, because KEDA has no other number"))
	case toZero:
		errs = append(errs, field.Invalid(at, *idle, "must be less than minReplicas, which is 0; remove idleReplicas, or set minReplicas to 1 or more"))
	}
	return errs
}

// reportScaledObject reports why KEDA does not scale, or not by all queries: then Ready is Unknown, as it
// is without a reason in a new ScaledObject.
func reportScaledObject(live kinds.Object) string {
	conditions, _, _ := unstructured.NestedSlice(live.(*unstructured.Unstructured).Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		reason, _ := c["reason"].(string)
		if c["type"] == "Ready" && (c["status"] == string(metav1.ConditionFalse) || c["status"] == string(metav1.ConditionUnknown) && reason != "") {
			return fmt.Sprintf("ScaledObject %q: Ready is %v (%.100s): %.300v", live.GetName(), c["status"], reason, c["message"])
		}
	}
	return ""
}
