// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelbox holds the defaults and the validation of ModelBoxes. Both are pure
// functions of the object. Admission runs them, and the controller runs them again in memory
// before it reconciles, so that an object which was stored without admission is handled in the
// same way.
package modelbox

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/schedules"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// AppName is the value of the label app.kubernetes.io/name on all children.
const AppName = "modelbox"

// Default sets the defaults of a new object in a cluster without sizes.
func Default(box *modelv1.ModelBox) { defaults{}.set(box) }

// Kind returns the defaults and the rules of ModelBoxes, which both processes run.
func Kind() kinds.Kind[modelv1.ModelBox] { return kindOf(defaults{}) }

// KindWithSizes is Kind for an admission that knows the sizes of the cluster, of which there may be
// none.
func KindWithSizes(sizes Sizes) kinds.Kind[modelv1.ModelBox] {
	if sizes == nil {
		sizes = Sizes{}
	}
	kind := kindOf(defaults{sizes})
	kind.Refuse = sizes.Refuse
	return kind
}

func kindOf(d defaults) kinds.Kind[modelv1.ModelBox] {
	return kinds.Kind[modelv1.ModelBox]{
		GVK:     modelv1.SchemeGroupVersion.WithKind("ModelBox"),
		Default: d.set,
		Stored:  DefaultStored,
		Codec:   codec,
		Update: &kinds.Update[modelv1.ModelBox]{
			Derived: d.derived, Possible: d.isPossible, Always: "serviceType", Keep: d.keep, SamePods: samePods,
		},
		Validate:  Validate,
		Immutable: Immutable,
		Warn: func(obj, old *modelv1.ModelBox, now time.Time) []string {
			was := cmp.Or(old, obj)
			restart := workload.RestartWarning(obj.Spec.RestartOnChange, was.Spec.RestartOnChange)
			held := workload.HoldWarning(obj.Spec.HoldChanges, obj.Spec.Windows, now, func() bool { return sameEffective(obj, was) })
			return slices.Concat(restart, held, Warn(obj), warnReplicas(obj, old), schedules.Warn(schedulesPath, obj.Spec.Schedules, now))
		},
	}
}

// defaults are the defaults of ModelBoxes.
type defaults struct {
	// sizes are those of the cluster. They are nil in the controller and in the validating webhook, in
	// which an object has the values of its size that are stored.
	sizes Sizes
}

// set sets the defaults of a new object. podTemplate has none. A name is that of the object: one with
// generateName has no name during admission (the API server generates it later, in Store.create of
// k8s.io/apiserver/pkg/registry/generic/registry), so the field remains empty until the next change
// of the spec, and its readers must default it until then.
func (d defaults) set(box *modelv1.ModelBox) {
	spec := &box.Spec
	spec.Name = cmp.Or(spec.Name, box.Name)
	setFixed(spec)
	setResourceType(spec)
	d.setSize(spec)
	ports.Default(spec.Ports)
	// It has a default without ports as well, although there is no Service then, so that the field is
	// never empty.
	spec.ServiceType = cmp.Or(spec.ServiceType, modelv1.DefaultServiceType(spec.Ports))
	setResources(spec)
	setProbes(spec)
	setProgressDeadline(spec)
}

// DefaultStored sets the defaults of a stored object in memory, as its controller does. An object that
// admission has seen gets no default that is newer than 0.1.0, because that would restart its pods:
// admission adds it with the next change of the pod template.
func DefaultStored(box *modelv1.ModelBox) {
	spec := &box.Spec
	startup, deadline := spec.StartupProbe.DeepCopy(), spec.ProgressDeadlineSeconds
	seen := !isUnseen(box)
	if !seen && IsSize(spec.ResourceType) {
		spec.Resources = nil // Admission has not set the values of the size, so it must not be built.
	}
	defaults{}.set(box)
	if seen {
		spec.StartupProbe, spec.ProgressDeadlineSeconds = startup, deadline
	}
}

// isUnseen reports whether an object was stored without admission, which sets defaultProbes
// in every object. (Up to 0.1.0, the schema did so as well.)
func isUnseen(box *modelv1.ModelBox) bool { return box.Spec.DefaultProbes == "" }

// setFixed sets the defaults that do not depend on other fields. The schema sets them as
// well, but not in objects that were stored before the schema had them, and not defaultProbes, which
// shows that admission has seen the object.
func setFixed(spec *modelv1.ModelBoxSpec) {
	if spec.Replicas == nil {
		spec.Replicas = new(int32(1))
	}
	schedules.Default(spec.Schedules)
	windows.Default(&spec.Windows)
	if modelv1.IsUnset(spec.RollingUpdate) {
		spec.RollingUpdate = new(intstr.FromString("25%"))
	}
	spec.DefaultProbes = cmp.Or(spec.DefaultProbes, modelv1.DefaultProbesEnabled)
	setModel(spec.Model)
	for i := range spec.Models {
		setModel(&spec.Models[i].Model)
	}
}

func setModel(model *modelv1.Model) {
	if model == nil {
		return
	}
	model.MountPath = cmp.Or(model.MountPath, modelv1.DefaultModelMountPath)
	if model.SizeLimit == nil {
		model.SizeLimit = new(resource.MustParse(modelv1.DefaultModelSizeLimit))
	}
}

// setResourceType sets resourceType to custom if resources are set, and to small otherwise.
func setResourceType(spec *modelv1.ModelBoxSpec) {
	switch {
	case spec.ResourceType != "":
	case spec.Resources != nil:
		spec.ResourceType = modelv1.ResourceTypeCustom
	default:
		spec.ResourceType = modelv1.ResourceTypeSmall
	}
}

// presets are the CPU and the memory of the resource types that have one. Requests equal limits, so
// that the pods have the quality of service class Guaranteed.
var presets = map[modelv1.ResourceType]corev1.ResourceList{
	modelv1.ResourceTypeSmall:  newPreset("1", "2Gi"),
	modelv1.ResourceTypeMedium: newPreset("2", "4Gi"),
	modelv1.ResourceTypeLarge:  newPreset("4", "8Gi"),
}

func newPreset(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// setResources sets resources to those of the preset, CPU and memory quantity by quantity: other
// resources, and claims, may be set beside them. If a client set another CPU or memory, only what
// clients set remains.
func setResources(spec *modelv1.ModelBoxSpec) {
	preset := presets[spec.ResourceType]
	if preset == nil || differs(spec.Resources, preset) {
		return
	}
	spec.Resources = cmp.Or(spec.Resources, &corev1.ResourceRequirements{})
	for _, list := range both(spec.Resources) {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		for name, quantity := range preset {
			if _, set := (*list)[name]; !set {
				(*list)[name] = quantity
			}
		}
	}
}

func both(r *corev1.ResourceRequirements) [2]*corev1.ResourceList {
	return [2]*corev1.ResourceList{&r.Limits, &r.Requests}
}

// differs reports whether a CPU or a memory is set, and is not equal to that of a preset, in any
// notation. All other resources are the client's.
func differs(r *corev1.ResourceRequirements, preset corev1.ResourceList) bool {
	if r == nil {
		return false
	}
	for name, of := range preset {
		for _, list := range both(r) {
			if value, set := (*list)[name]; set && value.Cmp(of) != 0 {
				return true
			}
		}
	}
	return false
}
