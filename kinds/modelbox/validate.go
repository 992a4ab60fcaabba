// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
	"github.com/modelbox-operator/modelbox-operator/kinds/podtemplate"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The paths are package variables, because they allocate and valid objects do not need them.
var (
	spec               = field.NewPath("spec")
	namePath           = spec.Child("name")
	imagePath          = spec.Child("image")
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
var reserved = []podtemplate.Reserved{
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
	errs := rules.ObjectName(&box.ObjectMeta)
	errs = append(errs, container(box)...)
	errs = append(errs, resources(&box.Spec)...)
	errs = append(errs, rules.SharedMemorySize(sharedMemoryPath, box.Spec.SharedMemory, box.Spec.Resources)...)
	errs = append(errs, rollout(&box.Spec)...)
	errs = append(errs, rules.Seconds(gracePath, box.Spec.TerminationGracePeriodSeconds, 0)...)
	errs = append(errs, service(&box.Spec)...)
	errs = append(errs, probes(&box.Spec)...)
	errs = append(errs, model(&box.Spec)...)
	return Pods(box, modelsource.Fetcher{Image: modelsource.Container}).Validate(errs) // Only the operator knows the fetcher's image.
}

// Pods returns what a ModelBox that has its defaults defines of its pods.
func Pods(box *modelv1.ModelBox, fetcher modelsource.Fetcher) *podtemplate.Pods {
	spec := &box.Spec
	main := corev1.Container{
		Name: spec.Name, Image: spec.Image, ImagePullPolicy: spec.ImagePullPolicy, Command: spec.Command, Args: spec.Args,
		Env: spec.Envs, EnvFrom: spec.EnvFrom,
		ReadinessProbe: spec.ReadinessProbe, LivenessProbe: spec.LivenessProbe, StartupProbe: spec.StartupProbe,
	}
	if spec.Resources != nil {
		main.Resources = *spec.Resources
	}
	return &podtemplate.Pods{
		AppName: AppName, Instance: box.Name, Container: main, Ports: spec.Ports, Reserved: reserved,
		SharedMemory: spec.SharedMemory, Model: spec.ModelOrDefault(), Fetcher: fetcher,
		ImagePullSecrets: spec.ImagePullSecrets, TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds,
		Template: spec.PodTemplate,
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
	}
	var errs field.ErrorList
	if preset == nil && !slices.Contains(resourceTypes, spec.ResourceType) {
		errs = append(errs, field.NotSupported(resourceTypePath, spec.ResourceType, resourceTypes))
	}
	if spec.ResourceType == modelv1.ResourceTypeCustom && spec.Resources == nil {
		errs = append(errs, field.Required(resourcesPath,
			"must be set if resourceType is custom; set it, or set resourceType to small, medium or large"))
	}
	return errs
}

func service(spec *modelv1.ModelBoxSpec) field.ErrorList {
	errs := ports.Validate(portsPath, spec.Ports)
	if !slices.Contains(serviceTypes, spec.ServiceType) {
		errs = append(errs, field.NotSupported(serviceTypePath, spec.ServiceType, serviceTypes))
	}
	return append(errs, ports.ValidateNodePorts(portsPath, spec.Ports, spec.ServiceType)...)
}

// probes validates what Kubernetes does not: a probe by the name of a port needs a port of the main
// container, among which the kubelet resolves the name, whatever their protocol.
func probes(spec *modelv1.ModelBoxSpec) field.ErrorList {
	var errs field.ErrorList
	for _, of := range [...]struct {
		path  *field.Path
		probe *corev1.Probe
	}{{readinessProbePath, spec.ReadinessProbe}, {livenessProbePath, spec.LivenessProbe}, {startupProbePath, spec.StartupProbe}} {
		if of.probe == nil {
			continue
		}
		if get := of.probe.HTTPGet; get != nil {
			errs = append(errs, probedPort(of.path.Child("httpGet", "port"), get.Port, spec.Ports)...)
		}
		if tcp := of.probe.TCPSocket; tcp != nil {
			errs = append(errs, probedPort(of.path.Child("tcpSocket", "port"), tcp.Port, spec.Ports)...)
		}
	}
	if !slices.Contains(defaultProbes, spec.DefaultProbes) {
		errs = append(errs, field.NotSupported(defaultProbesPath, spec.DefaultProbes, defaultProbes))
	}
	return errs
}

func probedPort(path *field.Path, port intstr.IntOrString, ports []modelv1.Port) field.ErrorList {
	named := func(p corev1.ContainerPort) bool { return p.Name == port.StrVal }
	if port.Type == intstr.Int || len(validation.IsValidPortName(port.StrVal)) > 0 || slices.ContainsFunc(modelv1.ContainerPorts(ports), named) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, port.StrVal, "the container has no port with this name; use a number or the name of one of its ports")}
}

var livenessProbeText = livenessProbePath.String() // For nearly every admission of a box with this probe.

// Warn returns warnings on what in a valid ModelBox is likely to be a mistake, each with
// the path of its field.
func Warn(box *modelv1.ModelBox) []string {
	var out []string
	if sentence := rules.RolloutWarning(rollingUpdatePath, box.Spec.RollingUpdate, box.Spec.Replicas); sentence != "" {
		out = append(out, sentence)
	}
	out = append(out, sparePodWarnings(&box.Spec)...)
	if warning, line := rules.LivenessWarning(livenessProbeText, box.Spec.LivenessProbe, box.Spec.StartupProbe); warning != "" {
		out = append(out, warning, line)
	}
	out = append(out, modelWarnings(&box.Spec)...)
	out = append(out, ports.NodePortWarnings(portsPath, box.Spec.Ports)...)
	return append(out, Pods(box, modelsource.Fetcher{}).Warnings()...)
}

// sparePodWarnings returns warnings if a rollout has to create a pod before it may delete one,
// and each pod needs a device: without a free one, such a rollout does not end.
func sparePodWarnings(spec *modelv1.ModelBoxSpec) []string {
	device := rules.Device(spec.Resources)
	if device == "" || spec.Replicas == nil || *spec.Replicas <= 0 || !rules.NeedsSparePod(spec.Strategy, spec.RollingUpdate, *spec.Replicas) {
		return nil
	}
	out := []string{strategyPath.String() + ": set {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}: a rollout needs a free " + device}
	if len(rules.OneRollout(rollingUpdatePath, spec.RollingUpdate, &appsv1.DeploymentStrategy{})) > 0 {
		out = append(out, rollingUpdatePath.String()+": remove it, because it may not be set together with spec.strategy")
	}
	return out
}
