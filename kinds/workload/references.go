// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// The kinds of a Reference.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
)

// Reference names a ConfigMap or a Secret in the namespace of the pods.
type Reference struct{ Kind, Name string }

func (r Reference) String() string { return r.Kind + "/" + r.Name }

// References returns the ConfigMaps and Secrets that env, envFrom and the volumes of a pod template
// refer to, each once, in order. Those of the container that fetches a model are not among them: a
// new token is no reason to replace a server. Nor are those that the kubelet and the drivers of
// volumes read, and no container.
func References(template *corev1.PodTemplateSpec) []Reference {
	var found []Reference
	add := func(kind string) pod.Visitor {
		return func(name string) bool {
			found = append(found, Reference{kind, name})
			return true
		}
	}
	readers := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: slices.DeleteFunc(slices.Clone(template.Spec.InitContainers), func(c corev1.Container) bool { return models.IsFetcher(&c) }),
		Containers:     template.Spec.Containers,
		Volumes: slices.DeleteFunc(slices.Clone(template.Spec.Volumes), func(v corev1.Volume) bool {
			return v.ConfigMap == nil && v.Secret == nil && v.Projected == nil
		}),
	}}
	pod.VisitPodConfigmapNames(readers, add(KindConfigMap))
	pod.VisitPodSecretNames(readers, add(KindSecret))
	slices.SortFunc(found, func(a, b Reference) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(found)
}
