// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"bytes"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/podtemplate"
)

// samePods reports whether two specs have the same pod template.
func samePods(a, b *modelv1.ModelBoxSpec) bool {
	return equality.Semantic.DeepEqual(ofPods(a), ofPods(b)) &&
		equality.Semantic.DeepEqual(modelv1.ContainerPorts(a.Ports), modelv1.ContainerPorts(b.Ports)) &&
		sameTemplates(a.PodTemplate, b.PodTemplate, a.Name)
}

// ofPods returns the part of a spec that is in the pod template as it is. A field is a part of
// it unless it is removed here.
func ofPods(spec *modelv1.ModelBoxSpec) *modelv1.ModelBoxSpec {
	out := *spec
	out.Replicas, out.RollingUpdate, out.Strategy, out.ProgressDeadlineSeconds = nil, nil, nil, nil
	out.ResourceType, out.DefaultProbes = "", "" // Other fields are derived from them.
	out.ServiceType, out.Paused = "", false
	out.Ports, out.PodTemplate = nil, nil // Compared by samePods.
	return &out
}

// sameTemplates reports whether two pod templates have the same content. One that cannot be
// decoded differs from any other.
func sameTemplates(a, b *runtime.RawExtension, main string) bool {
	if bytes.Equal(rawOf(a), rawOf(b)) {
		return true
	}
	first, errs := podtemplate.Decode(a)
	second, more := podtemplate.Decode(b)
	return len(errs)+len(more) == 0 && equality.Semantic.DeepEqual(content(first, main), content(second, main))
}

func rawOf(template *runtime.RawExtension) []byte {
	if template == nil {
		return nil
	}
	return template.Raw
}

// content returns a pod template without a main container that has only its name.
func content(template *corev1.PodTemplateSpec, main string) *corev1.PodTemplateSpec {
	if template == nil {
		return &corev1.PodTemplateSpec{}
	}
	template.Spec.Containers = slices.DeleteFunc(template.Spec.Containers, func(c corev1.Container) bool {
		return equality.Semantic.DeepEqual(c, corev1.Container{Name: main})
	})
	return template
}
