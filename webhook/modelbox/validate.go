// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/podrules"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// The paths are made once: on the way to an object that is accepted, none is needed.
var (
	spec               = field.NewPath("spec")
	namePath           = spec.Child("name")
	imagePath          = spec.Child("image")
	replicasPath       = spec.Child("replicas")
	resourceTypePath   = spec.Child("resourceType")
	resourcesPath      = spec.Child("resources")
	rollingUpdatePath  = spec.Child("rollingUpdate")
	portsPath          = spec.Child("ports")
	serviceTypePath    = spec.Child("serviceType")
	envsPath           = spec.Child("envs")
	envFromPath        = spec.Child("envFrom")
	readinessProbePath = spec.Child("readinessProbe")
	livenessProbePath  = spec.Child("livenessProbe")
	startupProbePath   = spec.Child("startupProbe")
	defaultProbesPath  = spec.Child("defaultProbes")
)

var (
	resourceTypes = []modelv1.ResourceType{
		modelv1.ResourceTypeSmall, modelv1.ResourceTypeMedium, modelv1.ResourceTypeLarge, modelv1.ResourceTypeCustom,
	}
	serviceTypes = []corev1.ServiceType{
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer,
	}
	defaultProbes = []modelv1.DefaultProbes{modelv1.DefaultProbesEnabled, modelv1.DefaultProbesDisabled}
)

// reserved are the main container's fields that a ModelBox has itself.
var reserved = []rules.Reserved{
	{Field: "image", Instead: "spec.image"},
	{Field: "resources", Instead: "spec.resources"},
	{Field: "ports", Instead: "spec.ports"},
	{Field: "env", Instead: "spec.envs"},
	{Field: "envFrom", Instead: "spec.envFrom"},
	{Field: "readinessProbe", Instead: "spec.readinessProbe"},
	{Field: "livenessProbe", Instead: "spec.livenessProbe"},
	{Field: "startupProbe", Instead: "spec.startupProbe"},
}

// Validate returns all that is wrong with a ModelBox which has its defaults, in the
// order of the fields. It does not change the object.
func Validate(box *modelv1.ModelBox) field.ErrorList {
	template, undecoded := rules.PodTemplate(box.Spec.PodTemplate)
	declared := rules.ContainerPorts(box.Spec.Ports)
	errs := rules.ObjectName(&box.ObjectMeta)
	errs = append(errs, container(box)...)
	errs = append(errs, size(&box.Spec)...)
	errs = append(errs, rules.Rollout(rollingUpdatePath, box.Spec.RollingUpdate)...)
	errs = append(errs, service(&box.Spec)...)
	errs = append(errs, environment(&box.Spec)...)
	errs = append(errs, probes(&box.Spec, declared)...)
	errs = append(errs, undecoded...)
	if template == nil && len(undecoded) > 0 {
		return errs // What refers to the template cannot be judged.
	}
	errs = append(errs, rules.TargetPorts(portsPath, box.Spec.Ports, template)...)
	errs = append(errs, rules.Claims(resourcesPath, box.Spec.Resources, template)...)
	errs = append(errs, rules.FileKeys(envsPath, box.Spec.Envs, template)...)
	if template == nil {
		return errs
	}
	errs = append(errs, rules.Template(template, rules.Main{
		Name:     box.Spec.Name,
		Reserved: reserved,
		AppName:  AppName,
		Instance: box.Name,
	})...)
	return append(errs, podrules.Validate(template, own(&box.Spec, declared), errs)...)
}

// own is what the spec says of its pods outside of the pod template.
func own(spec *modelv1.ModelBoxSpec, declared []corev1.ContainerPort) *podrules.Own {
	main := corev1.Container{
		Name: spec.Name, Image: spec.Image, Ports: declared, Env: spec.Envs, EnvFrom: spec.EnvFrom,
		ReadinessProbe: spec.ReadinessProbe, LivenessProbe: spec.LivenessProbe, StartupProbe: spec.StartupProbe,
	}
	if spec.Resources != nil {
		main.Resources = *spec.Resources
	}
	return &podrules.Own{Main: main, Ports: spec.Ports, Reserved: reserved}
}

// container judges the main container's name and image, and how many of it there
// are. A name that is the object's own has been judged as that.
func container(box *modelv1.ModelBox) field.ErrorList {
	var errs field.ErrorList
	if box.Spec.Name != box.Name {
		errs = append(errs, rules.Label(namePath, box.Spec.Name)...)
	}
	errs = append(errs, rules.Image(imagePath, box.Spec.Image)...)
	return append(errs, rules.Replicas(replicasPath, box.Spec.Replicas, rules.MaxReplicas)...)
}

// size judges the resources, by themselves and as what the resource type stands for.
func size(spec *modelv1.ModelBoxSpec) field.ErrorList {
	preset := presetOf(spec.ResourceType)
	switch {
	case preset != nil && !preset.is(spec.Resources):
		return field.ErrorList{rules.Ambiguous(field.Invalid(resourcesPath, spec.Resources, "resourceType "+string(preset.name)+" is "+
			preset.String()+"; set resourceType: custom to use other resources, or remove spec.resources"))}
	case preset != nil:
		return nil
	}
	var errs field.ErrorList
	if !slices.Contains(resourceTypes, spec.ResourceType) {
		errs = append(errs, field.NotSupported(resourceTypePath, spec.ResourceType, resourceTypes))
	}
	if spec.ResourceType == modelv1.ResourceTypeCustom && spec.Resources == nil {
		errs = append(errs, field.Required(resourcesPath,
			"resourceType custom is what spec.resources says: write it, or set resourceType to small, medium or large"))
	}
	return append(errs, rules.Resources(resourcesPath, spec.Resources)...)
}

func service(spec *modelv1.ModelBoxSpec) field.ErrorList {
	errs := rules.Ports(portsPath, spec.Ports)
	if !slices.Contains(serviceTypes, spec.ServiceType) {
		errs = append(errs, field.NotSupported(serviceTypePath, spec.ServiceType, serviceTypes))
	}
	return append(errs, rules.NodePorts(portsPath, spec.Ports, spec.ServiceType)...)
}

func environment(spec *modelv1.ModelBoxSpec) field.ErrorList {
	errs := rules.Envs(envsPath, spec.Envs)
	if len(spec.EnvFrom) > rules.MaxEnvFrom {
		return append(errs, field.TooMany(envFromPath, len(spec.EnvFrom), rules.MaxEnvFrom))
	}
	return append(errs, rules.EnvFrom(envFromPath, spec.EnvFrom)...)
}

func probes(spec *modelv1.ModelBoxSpec, ports []corev1.ContainerPort) field.ErrorList {
	errs := rules.Probe(readinessProbePath, spec.ReadinessProbe, rules.Readiness, ports)
	errs = append(errs, rules.Probe(livenessProbePath, spec.LivenessProbe, rules.Liveness, ports)...)
	errs = append(errs, rules.Probe(startupProbePath, spec.StartupProbe, rules.Startup, ports)...)
	if !slices.Contains(defaultProbes, spec.DefaultProbes) {
		errs = append(errs, field.NotSupported(defaultProbesPath, spec.DefaultProbes, defaultProbes))
	}
	return errs
}
