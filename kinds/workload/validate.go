// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The paths are those of every kind that has a pod template.
var (
	spec               = field.NewPath("spec")
	root               = spec.Child("podTemplate")
	containersPath     = root.Child("spec", "containers")
	initContainersPath = root.Child("spec", "initContainers")
	imagePath          = spec.Child("image")
	portsPath          = spec.Child("ports")
	selectorPath       = spec.Child("selector")
	schedulingPath     = spec.Child("scheduling")
	podLabelsPath      = schedulingPath.Child("podLabels")
	ownLabelsPath      = spec.Child("podMetadata", "labels")
	ownAnnotationsPath = spec.Child("podMetadata", "annotations")
	labelsPath         = root.Child("metadata", "labels")
	annotationsPath    = root.Child("metadata", "annotations")
)

// The maximum lengths of the lists of an object's own fields, which are those of the schema.
const (
	maxVariables   = 1024 // of envs, command and args, each
	maxSources     = 64   // of envFrom
	maxPullSecrets = 16
	// MaxContainers is the maximum number of containers of a pod template, those that run before
	// the others included. To validate one takes more time than to validate any other item.
	MaxContainers = 128
)

// Validate returns the errors of the effective pod template, each at the path of the field of the
// object that has the value, after errs, which are the errors of the object's other fields.
// A field that has an error already gets no other one. The rules are the operator's own, on what
// is merged, on images, and on the keys that server-side apply requires to be unique, and then
// those of Kubernetes.
func (p *Pods) Validate(errs field.ErrorList) field.ErrorList {
	over, undecoded := decode(p.Template)
	errs = append(errs, undecoded...)
	if over == nil && len(undecoded) > 0 {
		return errs // What refers to the template cannot be validated.
	}
	template := cmp.Or(over.template(), &corev1.PodTemplateSpec{})
	long := p.tooMany(template)
	if errs = append(errs, long...); len(long) > 0 || over != nil && over.large {
		return errs // To validate any further could cost too much.
	}
	errs = append(errs, schedulerName(p.scheduling())...)
	errs = append(errs, p.ownMetadata(template)...)
	errs = append(errs, p.selector(template)...)
	errs = append(errs, ports.ValidateTargets(portsPath, p.Ports, p.containerPorts(), template)...)
	model, _ := p.model() // A URI that cannot be parsed has an error of its own.
	errs = append(errs, p.reserved(template, model)...)
	effective, unmerged := p.merge(over, model)
	if errs = append(errs, unmerged...); len(errs) >= rules.MaxErrors {
		return errs // A response has no room for more.
	}
	p.withoutOwnLabels(&effective, template)
	located := paths{pods: p, over: template, effective: &effective, model: model, known: errs}
	return append(errs, located.locate(slices.Concat(keys(&effective), names(&effective), kubernetes(&effective)))...)
}

// template returns the typed form of a decoded template, nil if there is none.
func (d *decoded) template() *corev1.PodTemplateSpec {
	if d == nil {
		return nil
	}
	return &d.PodTemplateSpec
}

// tooMany returns the errors of lists of the object's own fields that are too long, and of too many
// containers in the template.
func (p *Pods) tooMany(template *corev1.PodTemplateSpec) field.ErrorList {
	var errs field.ErrorList
	for _, list := range [...]struct {
		name    string
		n, most int
	}{
		{"imagePullSecrets", len(p.ImagePullSecrets), maxPullSecrets},
		{"command", len(p.Container.Command), maxVariables},
		{"args", len(p.Container.Args), maxVariables},
		{"envs", len(p.Container.Env), maxVariables},
		{"envFrom", len(p.Container.EnvFrom), maxSources},
		{"scheduling.nodeSelector", len(p.scheduling().NodeSelector), maxScheduling},
		{"scheduling.tolerations", len(p.scheduling().Tolerations), maxScheduling},
		{"scheduling.podLabels", len(p.scheduling().PodLabels), maxScheduling},
	} {
		if list.n > list.most {
			errs = append(errs, field.TooMany(spec.Child(list.name), list.n, list.most))
		}
	}
	pod := &template.Spec
	if n := len(pod.Containers) + len(pod.InitContainers) + len(pod.EphemeralContainers); n > MaxContainers {
		errs = append(errs, field.TooMany(containersPath, n, MaxContainers))
	}
	return errs
}
