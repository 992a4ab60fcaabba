// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/schedules"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// The paths are package variables, because they allocate and valid objects do not need them.
var (
	spec               = field.NewPath("spec")
	namePath           = spec.Child("name")
	imagePath          = spec.Child("image")
	replicasPath       = spec.Child("replicas")
	schedulesPath      = spec.Child("schedules")
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
	modelsPath         = spec.Child("models")
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
var reserved = slices.Concat(workload.ReservedOfAll, []workload.Reserved{
	{Field: "ports", Instead: "spec.ports"},
	{Field: "envFrom", Instead: "spec.envFrom"},
	{Field: "readinessProbe", Instead: "spec.readinessProbe"},
	{Field: "livenessProbe", Instead: "spec.livenessProbe"},
	{Field: "startupProbe", Instead: "spec.startupProbe"},
})

// Validate returns the errors of a ModelBox that has its defaults, in the order of the
// fields. It does not change the object.
func Validate(box *modelv1.ModelBox) field.ErrorList {
	errs := rules.ObjectName(&box.ObjectMeta)
	errs = append(errs, container(box)...)
	errs = append(errs, resources(&box.Spec)...)
	errs = append(errs, rules.SharedMemorySize(sharedMemoryPath, box.Spec.SharedMemory, box.Spec.Resources)...)
	errs = append(errs, rollout(&box.Spec)...)
	errs = append(errs, rules.Between(gracePath, box.Spec.TerminationGracePeriodSeconds, 0, rules.MaxSeconds)...)
	errs = append(errs, service(&box.Spec)...)
	errs = append(errs, probes(&box.Spec)...)
	errs = append(errs, validateModels(&box.Spec)...)
	errs = append(errs, windows.ValidateOnChange(spec, box.Spec.Windows, box.Spec.RestartOnChange, box.Spec.HoldChanges)...)
	errs = append(errs, children.Validate(spec, OptionalChildren(box))...)
	pods := Pods(box, models.Fetcher{Image: models.Container}) // Only the operator knows the fetcher's image.
	errs = append(errs, children.ValidateMetadata(spec, &box.Spec.Children, pods.OwnLabels())...)
	errs = append(errs, children.ValidateRollout(spec, &box.Spec.Children, box.Spec.ProgressDeadlineSeconds)...)
	errs = append(errs, children.ValidateService(spec, &box.Spec.Children, box.Spec.ServiceType)...)
	return pods.Validate(errs)
}

// Immutable returns the errors of an update that changes what cannot change.
func Immutable(box, old *modelv1.ModelBox) field.ErrorList {
	errs := append(workload.SelectorChange(box.Spec.Selector, old.Spec.Selector), children.ServiceNameChange(spec, &box.Spec.Children, &old.Spec.Children)...)
	if hasLoadBalancer(&box.Spec) && hasLoadBalancer(&old.Spec) {
		errs = append(errs, children.ClassChange(spec, box.Spec.Service, old.Spec.Service)...)
	}
	return errs
}

func hasLoadBalancer(spec *modelv1.ModelBoxSpec) bool {
	return spec.ServiceType == corev1.ServiceTypeLoadBalancer && len(spec.Ports) > 0
}

// warnReplicas is children.WarnReplicas for an object, and for the stored one of an update.
func warnReplicas(box, old *modelv1.ModelBox) []string {
	var stored *int32
	if old != nil {
		stored = old.Spec.Replicas
	}
	return children.WarnReplicas(replicasPath, &box.ObjectMeta, OptionalChildren(box), stored)
}

func replicas(box, old *modelv1.ModelBox) *children.Replicas {
	return &children.Replicas{
		Meta: &box.ObjectMeta, Now: box.Spec.Autoscaling != nil, Old: old.Spec.Autoscaling != nil,
		Scheduled: len(box.Spec.Schedules)+len(old.Spec.Schedules) > 0, Sent: box.Spec.Replicas, Stored: old.Spec.Replicas,
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
	errs = append(errs, rules.Between(replicasPath, box.Spec.Replicas, 0, modelv1.MaxReplicas)...)
	return append(errs, schedules.Validate(schedulesPath, box.Spec.Schedules)...)
}

func rollout(spec *modelv1.ModelBoxSpec) field.ErrorList {
	errs := rules.Rollout(rollingUpdatePath, spec.RollingUpdate)
	errs = append(errs, rules.OneRollout(rollingUpdatePath, spec.RollingUpdate, spec.Strategy)...)
	errs = append(errs, rules.Strategy(strategyPath, spec.Strategy)...)
	return append(errs, rules.Between(deadlinePath, spec.ProgressDeadlineSeconds, minProgressSeconds, rules.MaxSeconds)...)
}

// resources validates the resources and their type. A preset defines CPU and memory, and
// nothing else.
func resources(spec *modelv1.ModelBoxSpec) field.ErrorList {
	if preset := presets[spec.ResourceType]; differs(spec.Resources, preset) { // Cpu and Memory copy, because a quantity caches its text.
		return rules.MarkUnbuildable(field.Invalid(resourcesPath, spec.Resources, fmt.Sprintf("resourceType %s is %s CPU and %s; "+
			"set resourceType: custom to use other CPU and memory, or remove both from limits and requests", spec.ResourceType, preset.Cpu(), preset.Memory())))
	}
	var errs field.ErrorList
	if !slices.Contains(resourceTypes, spec.ResourceType) {
		errs = append(errs, size(spec)...)
	}
	if spec.ResourceType == modelv1.ResourceTypeCustom && spec.Resources == nil {
		errs = append(errs, field.Required(resourcesPath,
			"must be set if resourceType is custom; set it, or set resourceType to small, medium or large"))
	}
	return errs
}

// size validates the form of an object with a size. Admission stores its values, and resources
// always.
func size(spec *modelv1.ModelBoxSpec) field.ErrorList {
	if errs := rules.Label(resourceTypePath, string(spec.ResourceType)); len(errs) > 0 {
		return errs
	}
	if spec.Resources != nil {
		return nil
	}
	return rules.MarkUnbuildable(field.Invalid(resourceTypePath, spec.ResourceType, "admission has not set the values of this size; "+
		"update spec while the webhook runs and the cluster has the size, or set resourceType to small, medium, large or custom"))
}

func service(spec *modelv1.ModelBoxSpec) field.ErrorList {
	errs := ports.Validate(portsPath, spec.Ports, spec.ServiceType)
	if !slices.Contains(serviceTypes, spec.ServiceType) {
		errs = append(errs, field.NotSupported(serviceTypePath, spec.ServiceType, serviceTypes))
	}
	return errs
}

// probes validates what Kubernetes does not: a probe by the name of a port needs a port of the main
// container, among which the kubelet resolves the name, whatever their protocol. What runs already
// in an adopted object is not judged.
func probes(spec *modelv1.ModelBoxSpec) field.ErrorList {
	var errs field.ErrorList
	for _, of := range [...]struct {
		path  *field.Path
		probe *corev1.Probe
	}{{readinessProbePath, spec.ReadinessProbe}, {livenessProbePath, spec.LivenessProbe}, {startupProbePath, spec.StartupProbe}} {
		if of.probe == nil || len(spec.Selector) > 0 {
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
