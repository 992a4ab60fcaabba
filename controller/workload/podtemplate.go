// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Template returns the desired pod template: PodTemplate applied to the main container as a
// strategic merge patch. Its error is a *rules.InvalidSpecError: admission would have
// refused the PodTemplate.
func (w *Workload) Template() (corev1.PodTemplateSpec, error) {
	model, err := w.modelPod()
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: w.labels()}, Spec: w.podSpec(model)}
	if w.PodTemplate == nil || len(w.PodTemplate.Raw) == 0 {
		settle(&template, model)
		return template, nil
	}
	merged, err := merge(template, w.PodTemplate)
	if err != nil {
		return template, &rules.InvalidSpecError{Err: fmt.Errorf("spec.podTemplate: cannot be applied to the generated pod template: %w", err)}
	}
	w.keepOwn(&merged.Spec)
	settle(&merged, model)
	return ownFields(merged), nil
}

func settle(template *corev1.PodTemplateSpec, model *modelsource.Pod) {
	if model != nil {
		model.Settle(&template.Spec)
	}
}

// keepOwn keeps the fields of the main container for which PodTemplate has an empty value,
// which means "not set". A strategic merge replaces them, because they are no lists with keys.
func (w *Workload) keepOwn(pod *corev1.PodSpec) {
	for i := range pod.Containers {
		c := &pod.Containers[i]
		if c.Name != w.Container {
			continue
		}
		c.Image = cmp.Or(c.Image, w.Image)
		c.ImagePullPolicy = cmp.Or(c.ImagePullPolicy, w.ImagePullPolicy)
		c.Command = notEmpty(c.Command, w.Command)
		c.Args = notEmpty(c.Args, w.Args)
	}
}

func notEmpty[S ~[]E, E any](list, otherwise S) S {
	if len(list) > 0 {
		return list
	}
	return otherwise
}

func (w *Workload) podSpec(model *modelsource.Pod) corev1.PodSpec {
	own := rules.SharedMemory(w.SharedMemory)
	pod := corev1.PodSpec{
		Containers:                    []corev1.Container{w.mainContainer()},
		ImagePullSecrets:              w.ImagePullSecrets,
		TerminationGracePeriodSeconds: w.TerminationGracePeriodSeconds,
	}
	if model != nil {
		own = append(own, model.Volume)
	}
	if model != nil && model.Fetch != nil {
		pod.InitContainers = []corev1.Container{*model.Fetch}
	}
	for i := range own {
		pod.Volumes = append(pod.Volumes, own[i].Volume)
		pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, own[i].Mount)
	}
	return pod
}

func (w *Workload) mainContainer() corev1.Container {
	container := corev1.Container{
		Name:            w.Container,
		Image:           w.Image,
		ImagePullPolicy: w.ImagePullPolicy,
		Command:         w.Command,
		Args:            w.Args,
		Ports:           modelv1.ContainerPorts(w.Ports),
		Env:             w.Env,
		EnvFrom:         w.EnvFrom,
		ReadinessProbe:  w.ReadinessProbe,
		LivenessProbe:   w.LivenessProbe,
		StartupProbe:    w.StartupProbe,
	}
	if w.Resources != nil {
		container.Resources = *w.Resources
	}
	return container
}

// merge applies a strategic merge patch to the generated template. It works on decoded JSON
// in which integers are integers: as a float64, 9007199254740993 would become
// 9007199254740992, and the largest int64 a number that no int64 can hold.
func merge(template corev1.PodTemplateSpec, over *runtime.RawExtension) (corev1.PodTemplateSpec, error) {
	original, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
	if err != nil {
		return template, err
	}
	var patch map[string]any
	if err := json.Unmarshal(over.Raw, &patch); err != nil {
		return template, err
	}
	dropNulls(patch)
	tree, err := strategicpatch.StrategicMergeMapPatch(original, patch, corev1.PodTemplateSpec{})
	if err != nil {
		return template, err
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return template, err
	}
	var merged corev1.PodTemplateSpec
	return merged, json.Unmarshal(data, &merged)
}

// dropNulls drops nulls, which in a strategic merge patch would delete what the operator
// generated: in a pod template they mean "not set".
func dropNulls(node any) {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			if value == nil {
				delete(node, key)
				continue
			}
			dropNulls(value)
		}
	case []any:
		for _, value := range node {
			dropNulls(value)
		}
	}
}

// ownFields returns a merged template with the fields that the operator must own, and no
// others.
//
// The API server fills in serviceAccount, the deprecated alias of serviceAccountName, and
// copies it back where serviceAccountName is missing. So the operator owns both: otherwise a
// service account would stay in the child after podTemplate does not name it any more.
//
// The annotation kubectl.kubernetes.io/restartedAt belongs to the field manager that
// restarts. A podTemplate that was copied from a running object contains the time of an old
// restart, and an apply of it would start another rollout.
func ownFields(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	template.Spec.DeprecatedServiceAccount = template.Spec.ServiceAccountName
	delete(template.Annotations, api.AnnotationRestartedAt)
	if len(template.Annotations) == 0 {
		template.Annotations = nil
	}
	return template
}
