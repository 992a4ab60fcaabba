// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/podtemplate"
	"github.com/modelbox-operator/modelbox-operator/kinds/podvalidation"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The paths are package variables, because they allocate and valid objects do not need them.
var (
	spec               = field.NewPath("spec")
	namePath           = spec.Child("name")
	imagePath          = spec.Child("image")
	pullPolicyPath     = spec.Child("imagePullPolicy")
	pullSecretsPath    = spec.Child("imagePullSecrets")
	commandPath        = spec.Child("command")
	argsPath           = spec.Child("args")
	replicasPath       = spec.Child("replicas")
	resourceTypePath   = spec.Child("resourceType")
	resourcesPath      = spec.Child("resources")
	strategyPath       = spec.Child("strategy")
	deadlinePath       = spec.Child("progressDeadlineSeconds")
	rollingUpdatePath  = spec.Child("rollingUpdate")
	sharedMemoryPath   = spec.Child("sharedMemory")
	gracePath          = spec.Child("terminationGracePeriodSeconds")
	portsPath          = spec.Child("ports")
	serviceTypePath    = spec.Child("serviceType")
	envsPath           = spec.Child("envs")
	envFromPath        = spec.Child("envFrom")
	readinessProbePath = spec.Child("readinessProbe")
	livenessProbePath  = spec.Child("livenessProbe")
	startupProbePath   = spec.Child("startupProbe")
	defaultProbesPath  = spec.Child("defaultProbes")
	modelPath          = spec.Child("model")
	modelFileURLPath   = spec.Child("modelFileURL")
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

// reserved are the fields of the main container that have a field of their own in a ModelBox.
var reserved = []podvalidation.ReservedField{
	{Field: "image", Instead: "spec.image"},
	{Field: "imagePullPolicy", Instead: "spec.imagePullPolicy", Either: true},
	{Field: "command", Instead: "spec.command", Either: true},
	{Field: "args", Instead: "spec.args", Either: true},
	{Field: "resources", Instead: "spec.resources"},
	{Field: "ports", Instead: "spec.ports"},
	{Field: "env", Instead: "spec.envs"},
	{Field: "envFrom", Instead: "spec.envFrom"},
	{Field: "readinessProbe", Instead: "spec.readinessProbe"},
	{Field: "livenessProbe", Instead: "spec.livenessProbe"},
	{Field: "startupProbe", Instead: "spec.startupProbe"},
}

// Validate returns the errors of a ModelBox that has its defaults, in the order of the
// fields. It does not change the object.
func Validate(box *modelv1.ModelBox) field.ErrorList {
	declared := modelv1.ContainerPorts(box.Spec.Ports)
	errs := rules.ObjectName(&box.ObjectMeta)
	errs = append(errs, container(box)...)
	errs = append(errs, resources(&box.Spec)...)
	errs = append(errs, rules.SharedMemorySize(sharedMemoryPath, box.Spec.SharedMemory, box.Spec.Resources)...)
	errs = append(errs, rollout(&box.Spec)...)
	errs = append(errs, rules.Seconds(gracePath, box.Spec.TerminationGracePeriodSeconds, 0)...)
	errs = append(errs, service(&box.Spec)...)
	errs = append(errs, environment(&box.Spec)...)
	errs = append(errs, probes(&box.Spec, declared)...)
	errs = append(errs, model(&box.Spec)...)
	of := owner(box, declared)
	return podtemplate.Validate(box.Spec.PodTemplate, &of, errs)
}

// owner returns what the rules of the pod template need to know of a ModelBox.
func owner(box *modelv1.ModelBox, declared []corev1.ContainerPort) podtemplate.Owner {
	spec := &box.Spec
	main := corev1.Container{
		Name: spec.Name, Image: spec.Image, ImagePullPolicy: spec.ImagePullPolicy, Command: spec.Command, Args: spec.Args,
		Ports: declared, Env: spec.Envs, EnvFrom: spec.EnvFrom,
		ReadinessProbe: spec.ReadinessProbe, LivenessProbe: spec.LivenessProbe, StartupProbe: spec.StartupProbe,
	}
	if spec.Resources != nil {
		main.Resources = *spec.Resources
	}
	volumes, fetch := modelVolume(spec)
	return podtemplate.Owner{
		AppName: AppName, Instance: box.Name, ImagePullSecrets: spec.ImagePullSecrets,
		Main: podvalidation.MainContainer{
			Container: main, ServicePorts: spec.Ports, Reserved: reserved,
			Volumes:        append(rules.SharedMemory(spec.SharedMemory), volumes...),
			InitContainers: fetch, TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds,
		},
	}
}

// container validates the main container's name, image and command, and replicas. A name
// that is the name of the object is validated as such.
func container(box *modelv1.ModelBox) field.ErrorList {
	var errs field.ErrorList
	if box.Spec.Name != box.Name {
		errs = append(errs, rules.Label(namePath, box.Spec.Name)...)
	}
	errs = append(errs, rules.Image(imagePath, box.Spec.Image)...)
	errs = append(errs, rules.PullPolicy(pullPolicyPath, box.Spec.ImagePullPolicy)...)
	errs = append(errs, rules.PullSecrets(pullSecretsPath, box.Spec.ImagePullSecrets)...)
	errs = append(errs, rules.Words(commandPath, box.Spec.Command)...)
	errs = append(errs, rules.Words(argsPath, box.Spec.Args)...)
	return append(errs, rules.Replicas(replicasPath, box.Spec.Replicas, modelv1.MaxReplicas)...)
}

func rollout(spec *modelv1.ModelBoxSpec) field.ErrorList {
	errs := rules.Rollout(rollingUpdatePath, spec.RollingUpdate)
	errs = append(errs, rules.OneRollout(rollingUpdatePath, spec.RollingUpdate, spec.Strategy)...)
	errs = append(errs, rules.Strategy(strategyPath, spec.Strategy)...)
	return append(errs, rules.Seconds(deadlinePath, spec.ProgressDeadlineSeconds, minProgressSeconds)...)
}

// resources validates the resources and their type. A preset defines CPU and memory, and
// nothing else.
func resources(spec *modelv1.ModelBoxSpec) field.ErrorList {
	preset := presetOf(spec.ResourceType)
	switch {
	case preset != nil && !preset.matches(spec.Resources):
		return rules.MarkUnbuildable(field.Invalid(resourcesPath, spec.Resources, "resourceType "+string(preset.name)+" is "+
			preset.String()+"; set resourceType: custom to use other CPU and memory, or remove both from limits and requests"))
	case preset != nil && !hasOthers(spec.Resources):
		return nil
	}
	var errs field.ErrorList
	if preset == nil && !slices.Contains(resourceTypes, spec.ResourceType) {
		errs = append(errs, field.NotSupported(resourceTypePath, spec.ResourceType, resourceTypes))
	}
	if spec.ResourceType == modelv1.ResourceTypeCustom && spec.Resources == nil {
		errs = append(errs, field.Required(resourcesPath,
			"must be set if resourceType is custom; set it, or set resourceType to small, medium or large"))
	}
	return append(errs, rules.Resources(resourcesPath, spec.Resources)...)
}

func service(spec *modelv1.ModelBoxSpec) field.ErrorList {
	errs := ports.Validate(portsPath, spec.Ports)
	if !slices.Contains(serviceTypes, spec.ServiceType) {
		errs = append(errs, field.NotSupported(serviceTypePath, spec.ServiceType, serviceTypes))
	}
	return append(errs, ports.ValidateNodePorts(portsPath, spec.Ports, spec.ServiceType)...)
}

func environment(spec *modelv1.ModelBoxSpec) field.ErrorList {
	errs := rules.Env(envsPath, spec.Envs)
	return append(errs, rules.EnvFrom(envFromPath, spec.EnvFrom)...)
}

func probes(spec *modelv1.ModelBoxSpec, declared []corev1.ContainerPort) field.ErrorList {
	errs := rules.Probe(readinessProbePath, spec.ReadinessProbe, rules.Readiness, declared)
	errs = append(errs, rules.Probe(livenessProbePath, spec.LivenessProbe, rules.Liveness, declared)...)
	errs = append(errs, rules.Probe(startupProbePath, spec.StartupProbe, rules.Startup, declared)...)
	if !slices.Contains(defaultProbes, spec.DefaultProbes) {
		errs = append(errs, field.NotSupported(defaultProbesPath, spec.DefaultProbes, defaultProbes))
	}
	return errs
}
