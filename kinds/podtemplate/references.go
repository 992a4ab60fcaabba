// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

// The kinds of a Reference.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
)

// Reference names a ConfigMap or a Secret in the namespace of the pods.
type Reference struct{ Kind, Name string }

func (r Reference) String() string { return r.Kind + "/" + r.Name }

// references collects the names that a pod template refers to.
type references []Reference

func (r *references) add(kind, name string) {
	if name != "" {
		*r = append(*r, Reference{kind, name})
	}
}

// References returns the ConfigMaps and Secrets that env, envFrom and the volumes of a pod template refer to, each
// once, in order. Those of the container that fetches a model are not among them: a new token is no reason to
// replace a server.
func References(template *corev1.PodTemplateSpec) []Reference {
	var found references
	for _, containers := range [][]corev1.Container{template.Spec.InitContainers, template.Spec.Containers} {
		for i := range containers {
			if !modelsource.IsFetcher(&containers[i]) {
				found.addContainer(&containers[i])
			}
		}
	}
	for i := range template.Spec.Volumes {
		found.addVolume(&template.Spec.Volumes[i])
	}
	slices.SortFunc(found, func(a, b Reference) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(found)
}

func (r *references) addContainer(c *corev1.Container) {
	for i := range c.EnvFrom {
		if from := c.EnvFrom[i].ConfigMapRef; from != nil {
			r.add(KindConfigMap, from.Name)
		}
		if from := c.EnvFrom[i].SecretRef; from != nil {
			r.add(KindSecret, from.Name)
		}
	}
	for i := range c.Env {
		from := cmp.Or(c.Env[i].ValueFrom, &corev1.EnvVarSource{})
		if from.ConfigMapKeyRef != nil {
			r.add(KindConfigMap, from.ConfigMapKeyRef.Name)
		}
		if from.SecretKeyRef != nil {
			r.add(KindSecret, from.SecretKeyRef.Name)
		}
	}
}

func (r *references) addVolume(v *corev1.Volume) {
	if v.ConfigMap != nil {
		r.add(KindConfigMap, v.ConfigMap.Name)
	}
	if v.Secret != nil {
		r.add(KindSecret, v.Secret.SecretName)
	}
	for _, source := range cmp.Or(v.Projected, &corev1.ProjectedVolumeSource{}).Sources {
		if source.ConfigMap != nil {
			r.add(KindConfigMap, source.ConfigMap.Name)
		}
		if source.Secret != nil {
			r.add(KindSecret, source.Secret.Name)
		}
	}
}

// RestartWarning returns a warning if an update sets or removes spec.restartOnChange, which replaces the pods.
func RestartWarning(value, old modelv1.RestartOnChange) []string {
	const referenced = modelv1.RestartOnChangeReferenced
	if (value == referenced) == (old == referenced) {
		return nil
	}
	return []string{"spec.restartOnChange: this change replaces the pods once, by a rollout"}
}
