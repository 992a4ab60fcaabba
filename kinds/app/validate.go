// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/schedules"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// AppName is the value of app.kubernetes.io/name on an App's children.
const AppName = "app"

var (
	spec          = field.NewPath("spec")
	replicasPath  = spec.Child("replicas")
	schedulesPath = spec.Child("schedules")
	portsPath     = spec.Child("ports")
)

// reserved are the fields of the main container that have a field of their own in an App.
var reserved = slices.Concat(workload.ReservedOfAll, []workload.Reserved{
	{Field: "ports", Instead: "spec.ports"},
	{Field: "envFrom", Instead: "spec.envFrom", Either: true},
})

// Validate returns the errors of an App that has its defaults, in the order of the
// fields. It does not change the object.
func Validate(app *appv1.App) field.ErrorList {
	errs := rules.ObjectName(&app.ObjectMeta)
	if app.Spec.Name != "" {
		errs = append(errs, rules.Label(spec.Child("name"), app.Spec.Name)...)
	}
	errs = append(errs, rules.Between(replicasPath, app.Spec.Replicas, 0, modelv1.MaxReplicas)...)
	errs = append(errs, schedules.Validate(schedulesPath, app.Spec.Schedules)...)
	errs = append(errs, rules.Image(spec.Child("image"), app.Spec.Image)...)
	errs = append(errs, rules.Strategy(spec.Child("strategy"), app.Spec.Strategy)...)
	errs = append(errs, rules.Between(spec.Child("progressDeadlineSeconds"), app.Spec.ProgressDeadlineSeconds, 1, rules.MaxSeconds)...)
	errs = append(errs, ports.Validate(portsPath, app.Spec.Ports, modelv1.DefaultServiceType(app.Spec.Ports))...)
	errs = append(errs, windows.ValidateOnChange(spec, app.Spec.Windows, app.Spec.RestartOnChange, app.Spec.HoldChanges)...)
	errs = append(errs, children.Validate(spec, OptionalChildren(app))...)
	pods := Pods(app)
	errs = append(errs, children.ValidateMetadata(spec, &app.Spec.Children, pods.OwnLabels())...)
	errs = append(errs, children.ValidateRollout(spec, &app.Spec.Children, app.Spec.ProgressDeadlineSeconds)...)
	errs = append(errs, children.ValidateService(spec, &app.Spec.Children, modelv1.DefaultServiceType(app.Spec.Ports))...)
	return pods.Validate(errs)
}

// Immutable returns the errors of an update that changes what cannot change.
func Immutable(app, old *appv1.App) field.ErrorList {
	return append(workload.SelectorChange(app.Spec.Selector, old.Spec.Selector), children.ServiceNameChange(spec, &app.Spec.Children, &old.Spec.Children)...)
}

// warnReplicas is children.WarnReplicas for an object, and for the stored one of an update.
func warnReplicas(app, old *appv1.App) []string {
	var stored *int32
	if old != nil {
		stored = old.Spec.Replicas
	}
	return children.WarnReplicas(replicasPath, &app.ObjectMeta, OptionalChildren(app), stored)
}

func replicas(app, old *appv1.App) *children.Replicas {
	return &children.Replicas{
		Meta: &app.ObjectMeta, Now: app.Spec.Autoscaling != nil, Old: old.Spec.Autoscaling != nil,
		Scheduled: len(app.Spec.Schedules)+len(old.Spec.Schedules) > 0, Sent: app.Spec.Replicas, Stored: old.Spec.Replicas,
	}
}

// Warn returns warnings on what in a valid App is likely to be a mistake.
func Warn(app *appv1.App) []string {
	w := Workload(app)
	return slices.Concat(w.Hints(), w.Warnings(), ports.NodePortWarnings(portsPath, app.Spec.Ports), children.Warn(spec, w.Optional))
}
