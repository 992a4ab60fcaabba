// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package around

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
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
func scaledObjectOf(o *Object) Child {
	if !o.asksPrometheus() {
		return nil
	}
	a := o.Autoscaling
	return o.unstructured(scaledObjectKind, map[string]any{
		"scaleTargetRef":  map[string]any{"apiVersion": o.Owner.GroupVersion().String(), "kind": o.Owner.Kind, "name": o.Meta.Name},
		"minReplicaCount": int64(ptr.Deref(a.MinReplicas, 1)),
		"maxReplicaCount": int64(a.MaxReplicas),
		"triggers": []any{map[string]any{"type": "prometheus", "metadata": map[string]any{
			"serverAddress": a.Prometheus.ServerAddress,
			"query":         a.Prometheus.Query,
			// KEDA reads no suffixes such as m.
			"threshold": strconv.FormatFloat(a.Prometheus.Target.AsApproximateFloat64(), 'f', -1, 64),
			// KEDA's default takes no data as 0, and would remove replicas when Prometheus has none.
			"ignoreNullValues": "false",
		}}},
	})
}

func (o *Object) asksPrometheus() bool {
	return o.Autoscaling != nil && o.Autoscaling.Prometheus != nil
}

// OwnsAutoscaler reports whether a HorizontalPodAutoscaler with this controller reference is one that KEDA makes for the
// ScaledObject of an object. It has another name.
func (o *Object) OwnsAutoscaler(controller *metav1.OwnerReference) bool {
	return o.asksPrometheus() && controller != nil && controller.Name == o.Meta.Name &&
		schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind() == scaledObjectKind.GroupKind()
}

func validatePrometheus(path *field.Path, o *Object) field.ErrorList {
	if !o.asksPrometheus() {
		return nil
	}
	var errs field.ErrorList
	q := o.Autoscaling.Prometheus
	address, err := url.Parse(q.ServerAddress)
	if at := path.Child("serverAddress"); len(q.ServerAddress) > modelv1.MaxServerAddress {
		errs = append(errs, field.TooLong(at, "", modelv1.MaxServerAddress))
	} else if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" || strings.ContainsAny(q.ServerAddress, " \t\n") {
		errs = append(errs, field.Invalid(at, q.ServerAddress, "must be a URL, such as http://prometheus-operated.monitoring.svc:9090"))
	}
	switch at := path.Child("query"); {
	case q.Query == "":
		errs = append(errs, field.Required(at, "must be a query whose result is one number"))
	case len(q.Query) > modelv1.MaxQuery:
		errs = append(errs, field.TooLong(at, "", modelv1.MaxQuery))
	}
	if q.Target.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("target"), q.Target.String(), "must be greater than 0"))
	}
	return errs
}

// reportScaledObject reports why KEDA does not scale.
func reportScaledObject(live Child) string {
	conditions, _, _ := unstructured.NestedSlice(live.(*unstructured.Unstructured).Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if c["type"] == "Ready" && c["status"] == string(metav1.ConditionFalse) {
			return fmt.Sprintf("ScaledObject %q: Ready is False (%.100v): %.300v", live.GetName(), c["reason"], c["message"])
		}
	}
	return ""
}
