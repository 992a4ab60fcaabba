// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

var podMonitorKind = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"}

var monitoring = Block{
	Field:    "monitoring",
	Kind:     podMonitorKind,
	Provider: "the Prometheus Operator",
	Desired:  podMonitor,
	Validate: validateMonitoring,
}

func podMonitor(o *Object) kinds.Object {
	port, found := o.MetricsPort()
	if !found {
		return nil
	}
	endpoint := map[string]any{"path": cmp.Or(o.Monitoring.Path, "/metrics")}
	if port.Type == intstr.String {
		endpoint["port"] = port.StrVal
	} else {
		endpoint["portNumber"] = int64(port.IntVal)
	}
	setText(endpoint, "interval", o.Monitoring.Interval)
	selector := map[string]any{}
	for key, value := range o.Selector {
		selector[key] = value
	}
	return o.unstructured(podMonitorKind, map[string]any{
		"selector": map[string]any{"matchLabels": selector},
		// The default, which is sent so that no other client can select pods elsewhere.
		"namespaceSelector":   map[string]any{"any": false, "matchNames": []any{o.Meta.Namespace}},
		"podMetricsEndpoints": []any{endpoint},
	})
}

// MetricsPort returns the container port that serves the metrics.
func (o *Object) MetricsPort() (port intstr.IntOrString, found bool) {
	switch {
	case o.Monitoring == nil:
		return port, false
	case !modelv1.IsUnset(o.Monitoring.Port):
		return *o.Monitoring.Port, true
	case len(o.Ports) > 0:
		return o.Ports[0].TargetPortOrDefault(), true
	}
	return port, false
}

var prometheusDuration = regexp.MustCompile(`^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$`)

func validateMonitoring(path *field.Path, o *Object) field.ErrorList {
	if o.Monitoring == nil {
		return nil
	}
	var errs field.ErrorList
	if _, found := o.MetricsPort(); !found {
		errs = append(errs, field.Required(path.Child("port"), "must be set if spec.ports is empty: the container port that serves the metrics"))
	}
	for _, message := range portErrors(o.Monitoring.Port) {
		errs = append(errs, field.Invalid(path.Child("port"), o.Monitoring.Port.String(), message))
	}
	errs = append(errs, validatePath(path.Child("path"), o.Monitoring.Path)...)
	interval, err := time.ParseDuration(cmp.Or(o.Monitoring.Interval, "1s"))
	if err != nil || !prometheusDuration.MatchString(o.Monitoring.Interval) || interval < time.Second || interval > 24*time.Hour {
		errs = append(errs, field.Invalid(path.Child("interval"), o.Monitoring.Interval, "must be a time from 1s to 24h, such as 30s"))
	}
	return errs
}

// portErrors returns what is wrong with a port, which may be unset.
func portErrors(port *intstr.IntOrString) []string {
	switch {
	case modelv1.IsUnset(port):
		return nil
	case port.Type == intstr.String:
		return validation.IsValidPortName(port.StrVal)
	}
	return validation.IsValidPortNum(int(port.IntVal))
}
