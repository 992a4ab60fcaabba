// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/podtemplate"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// AppName is the value of app.kubernetes.io/name on an App's children.
const AppName = "app"

var (
	spec         = field.NewPath("spec")
	imagePath    = spec.Child("image")
	replicasPath = spec.Child("replicas")
	deadlinePath = spec.Child("progressDeadlineSeconds")
	portsPath    = spec.Child("ports")
)

// reserved are the fields of the main container that have a field of their own in an App.
var reserved = []podtemplate.Reserved{
	{Field: "image", Instead: "spec.image"},
	{Field: "imagePullPolicy", Instead: "spec.imagePullPolicy", Either: true},
	{Field: "command", Instead: "spec.command", Either: true},
	{Field: "args", Instead: "spec.args", Either: true},
	{Field: "resources", Instead: "spec.resources"},
	{Field: "ports", Instead: "spec.ports"},
	{Field: "env", Instead: "spec.envs"},
	{Field: "envFrom", Instead: "spec.envFrom", Either: true},
}

// Validate returns the errors of an App that has its defaults, in the order of the
// fields. It does not change the object.
func Validate(app *appv1.App) field.ErrorList {
	spec := &app.Spec
	errs := rules.ObjectName(&app.ObjectMeta)
	errs = append(errs, rules.Replicas(replicasPath, spec.Replicas, modelv1.MaxReplicas)...)
	errs = append(errs, rules.Image(imagePath, spec.Image)...)
	errs = append(errs, rules.Seconds(deadlinePath, spec.ProgressDeadlineSeconds, 1)...)
	errs = append(errs, ports.Validate(portsPath, spec.Ports)...)
	return Pods(app).Validate(errs)
}

// Pods returns what an App that has its defaults defines of its pods.
func Pods(app *appv1.App) *podtemplate.Pods {
	spec := &app.Spec
	main := corev1.Container{
		Name: app.Name, Image: spec.Image, ImagePullPolicy: spec.ImagePullPolicy, Command: spec.Command, Args: spec.Args,
		Env: spec.Envs, EnvFrom: spec.EnvFrom,
	}
	if spec.Resources != nil {
		main.Resources = *spec.Resources
	}
	return &podtemplate.Pods{
		AppName: AppName, Instance: app.Name, Container: main, Ports: spec.Ports, Reserved: reserved,
		ImagePullSecrets: spec.ImagePullSecrets, Template: spec.PodTemplate,
	}
}

// Warn returns warnings on what in a valid App is likely to be a mistake.
func Warn(app *appv1.App) []string {
	return append(Pods(app).Warnings(), ports.NodePortWarnings(portsPath, app.Spec.Ports)...)
}
