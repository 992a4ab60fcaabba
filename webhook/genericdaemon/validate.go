// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/webhook/podrules"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
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

// reserved are the main container's fields that a Genericdaemon has itself.
var reserved = []rules.Reserved{
	{Field: "image", Instead: "spec.image"},
	{Field: "resources", Instead: "spec.resources"},
	{Field: "env", Instead: "spec.envs"},
}

// Validate returns all that is wrong with a Genericdaemon which has its defaults,
// in the order of the fields. It does not change the object.
func Validate(daemon *mydomainv1beta1.Genericdaemon) field.ErrorList {
	template, undecoded := rules.PodTemplate(daemon.Spec.PodTemplate)
	errs := rules.ObjectName(&daemon.ObjectMeta)
	errs = append(errs, label(daemon.Spec.Label)...)
	errs = append(errs, rules.Image(imagePath, daemon.Spec.Image)...)
	errs = append(errs, rules.Envs(envsPath, daemon.Spec.Envs)...)
	errs = append(errs, rules.Resources(resourcesPath, daemon.Spec.Resources)...)
	errs = append(errs, rules.Rollout(rollingUpdatePath, daemon.Spec.RollingUpdate)...)
	errs = append(errs, undecoded...)
	if template == nil && len(undecoded) > 0 {
		return errs // What refers to the template cannot be judged.
	}
	errs = append(errs, rules.Claims(resourcesPath, daemon.Spec.Resources, template)...)
	errs = append(errs, rules.FileKeys(envsPath, daemon.Spec.Envs, template)...)
	if template == nil {
		return errs
	}
	errs = append(errs, rules.Template(template, rules.Main{
		Name:     daemon.Name,
		Reserved: reserved,
		AppName:  AppName,
		Instance: daemon.Name,
	})...)
	return append(errs, podrules.Validate(template, own(daemon), errs)...)
}

// own is what a Genericdaemon says of its pods outside of the pod template. The label is
// not part of it: one that is valid by itself contradicts no affinity.
func own(daemon *mydomainv1beta1.Genericdaemon) *podrules.Own {
	main := corev1.Container{Name: daemon.Name, Image: daemon.Spec.Image, Env: daemon.Spec.Envs}
	if daemon.Spec.Resources != nil {
		main.Resources = *daemon.Spec.Resources
	}
	return &podrules.Own{Main: main, Reserved: reserved}
}

// label judges a node label: "", "key" or "key=value", as Kubernetes writes them.
func label(label string) field.ErrorList {
	if label == "" {
		return nil
	}
	key, value, _ := strings.Cut(label, "=")
	var errs field.ErrorList
	for _, problem := range validation.IsQualifiedName(key) {
		errs = append(errs, field.Invalid(labelPath, label, "the label's key is wrong: "+problem))
	}
	for _, problem := range validation.IsValidLabelValue(value) {
		errs = append(errs, field.Invalid(labelPath, label, "the label's value is wrong: "+problem+
			"; write key for any value, or key=value for that one"))
	}
	return errs
}

// Warn says what in a Genericdaemon is allowed and yet likely to surprise, one
// sentence each. It is of use for an object that Validate accepts.
func Warn(daemon *mydomainv1beta1.Genericdaemon) []string {
	template, _ := rules.PodTemplate(daemon.Spec.PodTemplate)
	out := rules.TemplateWarnings(template)
	if warning := rules.ImageWarning(imagePath, daemon.Spec.Image); warning != "" {
		out = append([]string{warning}, out...)
	}
	if daemon.Spec.Label == "" {
		out = append(out, labelPath.String()+": empty, so the daemon runs on every node")
	}
	return out
}
