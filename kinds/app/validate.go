// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/podtemplate"
	"github.com/modelbox-operator/modelbox-operator/kinds/podvalidation"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// AppName is the value of app.kubernetes.io/name on an App's children.
const AppName = "app"

var (
	spec            = field.NewPath("spec")
	imagePath       = spec.Child("image")
	pullPolicyPath  = spec.Child("imagePullPolicy")
	pullSecretsPath = spec.Child("imagePullSecrets")
	commandPath     = spec.Child("command")
	argsPath        = spec.Child("args")
	replicasPath    = spec.Child("replicas")
	resourcesPath   = spec.Child("resources")
	envsPath        = spec.Child("envs")
	envFromPath     = spec.Child("envFrom")
	deadlinePath    = spec.Child("progressDeadlineSeconds")
	portsPath       = spec.Child("ports")
)

// reserved are the fields of the main container that have a field of their own in an App.
var reserved = []podvalidation.ReservedField{
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
	errs = append(errs, rules.PullPolicy(pullPolicyPath, spec.ImagePullPolicy)...)
	errs = append(errs, rules.PullSecrets(pullSecretsPath, spec.ImagePullSecrets)...)
	errs = append(errs, rules.Words(commandPath, spec.Command)...)
	errs = append(errs, rules.Words(argsPath, spec.Args)...)
	errs = append(errs, rules.Resources(resourcesPath, spec.Resources)...)
	errs = append(errs, rules.Env(envsPath, spec.Envs)...)
	errs = append(errs, rules.EnvFrom(envFromPath, spec.EnvFrom)...)
	errs = append(errs, rules.Seconds(deadlinePath, spec.ProgressDeadlineSeconds, 1)...)
	errs = append(errs, ports.Validate(portsPath, spec.Ports)...)
	of := owner(app)
	return podtemplate.Validate(spec.PodTemplate, &of, errs)
}

// owner returns what the rules of the pod template need to know of an App.
func owner(app *appv1.App) podtemplate.Owner {
	spec := &app.Spec
	main := corev1.Container{
		Name: app.Name, Image: spec.Image, ImagePullPolicy: spec.ImagePullPolicy, Command: spec.Command, Args: spec.Args,
		Ports: modelv1.ContainerPorts(spec.Ports), Env: spec.Envs, EnvFrom: spec.EnvFrom,
	}
	if spec.Resources != nil {
		main.Resources = *spec.Resources
	}
	return podtemplate.Owner{
		AppName: AppName, Instance: app.Name, ImagePullSecrets: spec.ImagePullSecrets,
		Main: podvalidation.MainContainer{Container: main, ServicePorts: spec.Ports, Reserved: reserved},
	}
}

// Warn returns warnings on what in a valid App is likely to be a mistake.
func Warn(app *appv1.App) []string {
	of, out := owner(app), podtemplate.Warnings(app.Spec.PodTemplate)
	if warning := podtemplate.ImageWarning(app.Spec.PodTemplate, &of.Main); warning != "" {
		out = append([]string{warning}, out...)
	}
	return append(out, ports.NodePortWarnings(portsPath, app.Spec.Ports)...)
}
