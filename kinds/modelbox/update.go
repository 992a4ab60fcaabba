// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// The fields that have derived values. Without managedFields, resourceType is none: a wrong guess
// would change an object that should be refused.
var (
	derivedFields = kinds.NewFields(
		"serviceType", "progressDeadlineSeconds", "resources.limits.*", "resources.requests.*", "ports.*.name",
		"readinessProbe.tcpSocket.port", "livenessProbe.tcpSocket.port",
		"startupProbe.tcpSocket.port", "startupProbe.periodSeconds", "startupProbe.failureThreshold",
	)
	derivedType   = kinds.NewFields("resourceType")
	derivedOfSize = slices.Concat(sizeFields, kinds.NewFields("envs.*", "ports.*"))
)

// derived returns the fields of an update that have derived values.
func (d defaults) derived(sent, stored *modelv1.ModelBox) kinds.Fields {
	fields := derivedFields
	if len(sent.ManagedFields) > 0 {
		fields = slices.Concat(fields, derivedType)
	}
	if d.hasSize(sent, stored) {
		fields = slices.Concat(fields, derivedOfSize)
	}
	return fields
}

// hasSize reports whether the values of a size are set anew or removed: that of the object, which
// the cluster has, or one that it leaves.
func (d defaults) hasSize(sent, stored *modelv1.ModelBox) bool {
	return d.size(&sent.Spec) != nil || IsSize(stored.Spec.ResourceType) && !IsSize(sent.Spec.ResourceType)
}

// isPossible reports whether a value can be a default, or one of a size.
func (d defaults) isPossible(leaf *kinds.Leaf, sent, stored *modelv1.ModelBox) bool {
	hasSize := d.hasSize(sent, stored)
	switch leaf.Top() {
	case "image":
		return !keepsSize(sent, stored) || resizes(sent)
	case "resourceType":
		return slices.Contains([]any{string(modelv1.ResourceTypeSmall), string(modelv1.ResourceTypeCustom)}, leaf.Value)
	case "serviceType":
		return slices.Contains([]any{string(corev1.ServiceTypeClusterIP), string(corev1.ServiceTypeNodePort)}, leaf.Value)
	case "progressDeadlineSeconds":
		return leaf.Value.(int64) >= progressSeconds
	case "ports":
		return leaf.Name() == "" || ports.IsDerivedName(leaf) // Items are derived only under a size.
	case "resources":
		return hasSize || inPresets(leaf)
	}
	return hasSize && leaf.Top() != "livenessProbe" || isDefaultProbe(leaf, &sent.Spec, &stored.Spec)
}

// isDefaultProbe reports whether a value of a probe can be a default.
func isDefaultProbe(leaf *kinds.Leaf, sent, stored *modelv1.ModelBoxSpec) bool {
	switch leaf.Top() {
	case "readinessProbe":
		return isDefaultAction(sent.ReadinessProbe)
	case "livenessProbe":
		return isDefaultAction(sent.LivenessProbe)
	}
	return leaf.Name() == "port" && isDefaultAction(sent.StartupProbe) || isDefaultTiming(leaf) && !hasOtherAction(stored.StartupProbe)
}

func inPresets(leaf *kinds.Leaf) bool {
	for _, preset := range presets {
		if quantity, ok := preset[corev1.ResourceName(leaf.Name())]; ok && leaf.Value == quantity.String() {
			return true
		}
	}
	return false
}

// isDefaultAction reports whether the action of a probe, if there is one, is only a port.
func isDefaultAction(probe *corev1.Probe) bool {
	return probe == nil || probe.TCPSocket == nil || probe.TCPSocket.Host == ""
}

func isDefaultTiming(leaf *kinds.Leaf) bool {
	return leaf.Value == map[string]int64{"periodSeconds": rules.StartupPeriodSeconds, "failureThreshold": rules.StartupFailureThreshold}[leaf.Name()]
}

// keep sets what stays in an update: the number of replicas that an autoscaler or a schedule has set,
// the resources of a preset that becomes custom, the image of a size, and all values of one that the
// cluster no longer has.
func (d defaults) keep(box, sent, stored *modelv1.ModelBox) {
	spec, was := &box.Spec, &stored.Spec
	replicas(box, stored).Keep(&spec.Replicas)
	if spec.Resources == nil && spec.ResourceType == modelv1.ResourceTypeCustom && !IsSize(was.ResourceType) {
		// An editor shows those of the preset as if they were set, and an update with the same
		// values has no effect.
		spec.Resources = sent.Spec.Resources
	}
	if d.sizes == nil || !keepsSize(box, stored) {
		return
	}
	switch size := d.size(spec); {
	case size == nil:
		fill(spec, withoutDefaultProbes(was, spec))
	case size.Image != "" && !resizes(box):
		spec.Image = cmp.Or(spec.Image, was.Image)
	}
}

// codec returns what encodes the fields that have defaults. What is a default under a size alone can be
// large.
func codec(sent, stored *modelv1.ModelBox) kinds.Codec[modelv1.ModelBox] {
	if IsSize(sent.Spec.ResourceType) || stored != nil && IsSize(stored.Spec.ResourceType) {
		return others
	}
	return func(to, from *modelv1.ModelBox) {
		others(to, from)
		to.Spec.Args, to.Spec.Command, to.Spec.Envs, to.Spec.Scheduling = from.Spec.Args, from.Spec.Command, from.Spec.Envs, from.Spec.Scheduling
	}
}

// others sets what has no defaults.
func others(to, from *modelv1.ModelBox) {
	to.TypeMeta, to.ObjectMeta, to.Status = from.TypeMeta, from.ObjectMeta, from.Status
	to.Spec.PodTemplate, to.Spec.EnvFrom, to.Spec.Children = from.Spec.PodTemplate, from.Spec.EnvFrom, from.Spec.Children
}

// samePods reports whether an update leaves the pods as they are, and what they are derived from. An
// object of a size that admission has not seen has no pods.
func samePods(box, stored *modelv1.ModelBox) bool {
	spec, was := &box.Spec, &stored.Spec
	if spec.ResourceType != was.ResourceType || IsSize(was.ResourceType) && was.Resources == nil || resizes(box) {
		return false
	}
	return equality.Semantic.DeepEqual(spec, was) ||
		spec.DefaultProbes == was.DefaultProbes && spec.RestartOnChange == was.RestartOnChange && sameEffective(box, stored)
}

// sameEffective reports whether the pod templates of two objects are the same. They are compared
// before they are merged, because that costs less.
func sameEffective(a, b *modelv1.ModelBox) bool {
	now, was := Pods(a, models.Fetcher{}), Pods(b, models.Fetcher{})
	if !sameTemplates(now.Template, was.Template, b.Spec.Name) {
		return false
	}
	now.Template, was.Template = nil, nil
	return workload.SameEffective(now, was)
}

// sameTemplates reports whether two pod templates have the same content. One that cannot be
// decoded differs from any other.
func sameTemplates(a, b *runtime.RawExtension, main string) bool {
	if equality.Semantic.DeepEqual(a, b) {
		return true
	}
	first, errs := workload.Decode(a)
	second, more := workload.Decode(b)
	return len(errs)+len(more) == 0 && equality.Semantic.DeepEqual(content(first, main), content(second, main))
}

// content returns a pod template without a main container that has only its name.
func content(template *corev1.PodTemplateSpec, main string) *corev1.PodTemplateSpec {
	template = cmp.Or(template, &corev1.PodTemplateSpec{})
	template.Spec.Containers = slices.DeleteFunc(template.Spec.Containers, func(c corev1.Container) bool {
		return equality.Semantic.DeepEqual(c, corev1.Container{Name: main})
	})
	return template
}
