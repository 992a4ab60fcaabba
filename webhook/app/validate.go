// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/podrules"
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

// reserved are the main container's fields that an App has itself.
var reserved = []rules.Reserved{
	{Field: "image", Instead: "spec.image"},
	{Field: "resources", Instead: "spec.resources"},
	{Field: "ports", Instead: "spec.ports"},
	{Field: "env", Instead: "spec.envs"},
}

// Validate returns all that is wrong with an App which has its defaults, in the
// order of the fields. It does not change the object.
func Validate(app *appv1.App) field.ErrorList {
	template, undecoded := rules.PodTemplate(app.Spec.PodTemplate)
	errs := rules.ObjectName(&app.ObjectMeta)
	errs = append(errs, rules.Replicas(replicasPath, app.Spec.Replicas, rules.MaxReplicas)...)
	errs = append(errs, rules.Image(imagePath, app.Spec.Image)...)
	errs = append(errs, rules.Resources(resourcesPath, app.Spec.Resources)...)
	errs = append(errs, rules.Envs(envsPath, app.Spec.Envs)...)
	errs = append(errs, rules.Ports(portsPath, app.Spec.Ports)...)
	errs = append(errs, undecoded...)
	if template == nil && len(undecoded) > 0 {
		return errs // What refers to the template cannot be judged.
	}
	errs = append(errs, rules.TargetPorts(portsPath, app.Spec.Ports, template)...)
	errs = append(errs, rules.Claims(resourcesPath, app.Spec.Resources, template)...)
	errs = append(errs, rules.FileKeys(envsPath, app.Spec.Envs, template)...)
	if template == nil {
		return errs
	}
	errs = append(errs, rules.Template(template, rules.Main{
		Name:     app.Name,
		Reserved: reserved,
		AppName:  AppName,
		Instance: app.Name,
	})...)
	return append(errs, podrules.Validate(template, own(app), errs)...)
}

// own is what an App says of its pods outside of the pod template.
func own(app *appv1.App) *podrules.Own {
	main := corev1.Container{
		Name: app.Name, Image: app.Spec.Image, Ports: rules.ContainerPorts(app.Spec.Ports), Env: app.Spec.Envs,
	}
	if app.Spec.Resources != nil {
		main.Resources = *app.Spec.Resources
	}
	return &podrules.Own{Main: main, Ports: app.Spec.Ports, Reserved: reserved}
}

// Warn says what in an App is allowed and yet likely to surprise, one sentence
// each. It is of use for an object that Validate accepts.
func Warn(app *appv1.App) []string {
	template, _ := rules.PodTemplate(app.Spec.PodTemplate)
	out := rules.TemplateWarnings(template)
	if warning := rules.ImageWarning(imagePath, app.Spec.Image); warning != "" {
		out = append([]string{warning}, out...)
	}
	return append(out, rules.NodePortWarnings(portsPath, app.Spec.Ports)...)
}
