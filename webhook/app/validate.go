// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/podtemplate"
	"github.com/modelbox-operator/modelbox-operator/webhook/podvalidation"
	"github.com/modelbox-operator/modelbox-operator/webhook/ports"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// AppName is the value of app.kubernetes.io/name on an App's children.
const AppName = "app"

var (
	spec          = field.NewPath("spec")
	imagePath     = spec.Child("image")
	replicasPath  = spec.Child("replicas")
	resourcesPath = spec.Child("resources")
	envsPath      = spec.Child("envs")
	portsPath     = spec.Child("ports")
)

// reserved are the fields of the main container that have a field of their own in an App.
var reserved = []podvalidation.ReservedField{
	{Field: "image", Instead: "spec.image"},
	{Field: "resources", Instead: "spec.resources"},
	{Field: "ports", Instead: "spec.ports"},
	{Field: "env", Instead: "spec.envs"},
}

// Validate returns the errors of an App that has its defaults, in the order of the
// fields. It does not change the object.
func Validate(app *appv1.App) field.ErrorList {
	errs := rules.ObjectName(&app.ObjectMeta)
	errs = append(errs, rules.Replicas(replicasPath, app.Spec.Replicas, modelv1.MaxReplicas)...)
	errs = append(errs, rules.Image(imagePath, app.Spec.Image)...)
	errs = append(errs, rules.Resources(resourcesPath, app.Spec.Resources)...)
	errs = append(errs, rules.Env(envsPath, app.Spec.Envs)...)
	errs = append(errs, ports.Validate(portsPath, app.Spec.Ports)...)
	return podtemplate.Validate(app.Spec.PodTemplate, owner(app), errs)
}

// owner returns what the rules of the pod template need to know of an App.
func owner(app *appv1.App) *podtemplate.Owner {
	main := corev1.Container{
		Name: app.Name, Image: app.Spec.Image, Ports: modelv1.ContainerPorts(app.Spec.Ports), Env: app.Spec.Envs,
	}
	if app.Spec.Resources != nil {
		main.Resources = *app.Spec.Resources
	}
	return &podtemplate.Owner{
		AppName: AppName, Instance: app.Name,
		Main: podvalidation.MainContainer{Container: main, ServicePorts: app.Spec.Ports, Reserved: reserved},
	}
}

// Warn returns warnings on what in a valid App is likely to be a mistake.
func Warn(app *appv1.App) []string {
	out := podtemplate.Warnings(app.Spec.PodTemplate)
	if warning := rules.ImageWarning(imagePath, app.Spec.Image); warning != "" {
		out = append([]string{warning}, out...)
	}
	return append(out, ports.NodePortWarnings(portsPath, app.Spec.Ports)...)
}
