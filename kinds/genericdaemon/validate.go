// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/kinds/podtemplate"
	"github.com/modelbox-operator/modelbox-operator/kinds/podvalidation"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// AppName is the value of app.kubernetes.io/name on a Genericdaemon's children.
const AppName = "genericdaemon"

var (
	spec              = field.NewPath("spec")
	labelPath         = spec.Child("label")
	imagePath         = spec.Child("image")
	envsPath          = spec.Child("envs")
	resourcesPath     = spec.Child("resources")
	rollingUpdatePath = spec.Child("rollingUpdate")
)

// reserved are the fields of the main container that have a field of their own in a
// Genericdaemon.
var reserved = []podvalidation.ReservedField{
	{Field: "image", Instead: "spec.image"},
	{Field: "resources", Instead: "spec.resources"},
	{Field: "env", Instead: "spec.envs"},
}

// Validate returns the errors of a Genericdaemon that has its defaults, in the order of
// the fields. It does not change the object.
func Validate(daemon *mydomainv1beta1.Genericdaemon) field.ErrorList {
	errs := rules.ObjectName(&daemon.ObjectMeta)
	errs = append(errs, label(daemon.Spec.Label)...)
	errs = append(errs, rules.Image(imagePath, daemon.Spec.Image)...)
	errs = append(errs, rules.Env(envsPath, daemon.Spec.Envs)...)
	errs = append(errs, rules.Resources(resourcesPath, daemon.Spec.Resources)...)
	errs = append(errs, rules.Rollout(rollingUpdatePath, daemon.Spec.RollingUpdate)...)
	return podtemplate.Validate(daemon.Spec.PodTemplate, owner(daemon), errs)
}

// owner returns what the rules of the pod template need to know of a Genericdaemon. The
// label is not part of it: a valid label conflicts with no affinity.
func owner(daemon *mydomainv1beta1.Genericdaemon) *podtemplate.Owner {
	main := corev1.Container{Name: daemon.Name, Image: daemon.Spec.Image, Env: daemon.Spec.Envs}
	if daemon.Spec.Resources != nil {
		main.Resources = *daemon.Spec.Resources
	}
	return &podtemplate.Owner{
		AppName: AppName, Instance: daemon.Name,
		Main: podvalidation.MainContainer{Container: main, Reserved: reserved},
	}
}

// label validates a node label: "", "key" or "key=value".
func label(label string) field.ErrorList {
	if label == "" {
		return nil
	}
	key, value, _ := strings.Cut(label, "=")
	var errs field.ErrorList
	for _, problem := range validation.IsQualifiedName(key) {
		errs = append(errs, field.Invalid(labelPath, label, "invalid label key: "+problem))
	}
	for _, problem := range validation.IsValidLabelValue(value) {
		errs = append(errs, field.Invalid(labelPath, label, "invalid label value: "+problem+
			"; use key for any value, or key=value for one value"))
	}
	return errs
}

// Warn returns warnings on what in a valid Genericdaemon is likely to be a mistake.
func Warn(daemon *mydomainv1beta1.Genericdaemon) []string {
	out := podtemplate.Warnings(daemon.Spec.PodTemplate)
	if warning := podtemplate.ImageWarning(daemon.Spec.PodTemplate, &owner(daemon).Main); warning != "" {
		out = append([]string{warning}, out...)
	}
	if daemon.Spec.Label == "" {
		out = append(out, labelPath.String()+": empty, so the daemon runs on every node")
	}
	return out
}
