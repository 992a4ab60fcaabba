// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/around"
	"github.com/modelbox-operator/modelbox-operator/kinds/podtemplate"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/schedules"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
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
var reserved = slices.Concat(podtemplate.ReservedOfAll, []podtemplate.Reserved{
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
	errs = append(errs, rules.Between(spec.Child("progressDeadlineSeconds"), app.Spec.ProgressDeadlineSeconds, 1, rules.MaxSeconds)...)
	errs = append(errs, ports.Validate(portsPath, app.Spec.Ports, modelv1.DefaultServiceType(app.Spec.Ports))...)
	errs = append(errs, windows.ValidateOnChange(spec, app.Spec.Windows, app.Spec.RestartOnChange)...)
	errs = append(errs, around.Validate(spec, Around(app))...)
	pods := Pods(app)
	errs = append(errs, around.ValidateMetadata(spec, &app.Spec.Around, pods.OwnLabels())...)
	errs = append(errs, around.ValidateRollout(spec, &app.Spec.Around, app.Spec.ProgressDeadlineSeconds)...)
	errs = append(errs, around.ValidateService(spec, &app.Spec.Around, modelv1.DefaultServiceType(app.Spec.Ports))...)
	return pods.Validate(errs)
}

// Immutable returns the errors of an update that changes what cannot change.
func Immutable(app, old *appv1.App) field.ErrorList {
	return podtemplate.SelectorChange(app.Spec.Selector, old.Spec.Selector)
}

func replicas(app, old *appv1.App) *around.Replicas {
	return &around.Replicas{
		Meta: &app.ObjectMeta, Now: app.Spec.Autoscaling != nil, Old: old.Spec.Autoscaling != nil, Sent: app.Spec.Replicas, Stored: old.Spec.Replicas,
	}
}

// warnReplicas is around.WarnReplicas for an object, and for the stored one of an update.
func warnReplicas(app, old *appv1.App) []string {
	var stored *int32
	if old != nil {
		stored = old.Spec.Replicas
	}
	return around.WarnReplicas(replicasPath, &app.ObjectMeta, Around(app), stored)
}

// Pods returns what an App that has its defaults defines of its pods.
func Pods(app *appv1.App) *podtemplate.Pods {
	spec := &app.Spec
	main := corev1.Container{
		Name: cmp.Or(spec.Name, app.Name), Image: spec.Image, ImagePullPolicy: spec.ImagePullPolicy, Command: spec.Command, Args: spec.Args,
		Env: spec.Envs, EnvFrom: spec.EnvFrom, Resources: ptr.Deref(spec.Resources, corev1.ResourceRequirements{}),
	}
	return &podtemplate.Pods{
		AppName: AppName, Instance: app.Name, MatchLabels: modelv1.MatchLabels(spec.Selector), Container: main, Ports: spec.Ports, Reserved: reserved,
		ImagePullSecrets: spec.ImagePullSecrets, Metadata: spec.PodMetadata, Scheduling: spec.Scheduling, Template: spec.PodTemplate,
	}
}

// Around returns what an App that has its defaults has around its pods.
func Around(app *appv1.App) *around.Object {
	spec := &app.Spec
	return &around.Object{
		Around: &spec.Around, Replicas: *spec.Replicas, Ports: spec.Ports,
		Resources: ptr.Deref(spec.Resources, corev1.ResourceRequirements{}), Scheduled: len(spec.Schedules) > 0,
	}
}

// Warn returns warnings on what in a valid App is likely to be a mistake.
func Warn(app *appv1.App) []string {
	out := append(Pods(app).Warnings(), ports.NodePortWarnings(portsPath, app.Spec.Ports)...)
	return append(out, around.Warn(spec, Around(app))...)
}
