// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
)

// kubernetes returns the errors that the API server would return for a Deployment or a DaemonSet
// with these pods, in any order. It runs the code of Kubernetes itself, of the version in go.mod
// and with the feature gates that are on by default. An API server of another version, or with
// other feature gates, may accept or refuse other children; its errors are reported in the object's
// status.
func kubernetes(effective *corev1.PodTemplateSpec) field.ErrorList {
	template := effective.DeepCopy()
	for _, c := range containers(&template.Spec) {
		c.Image = c.Image[:min(len(c.Image), maxImage)]
	}
	return append(missingClaims(&template.Spec), asServer(template)...)
}

// containers iterates over the containers of a pod, and then over its init containers, with their
// paths.
func containers(pod *corev1.PodSpec) iter.Seq2[*field.Path, *corev1.Container] {
	return func(yield func(*field.Path, *corev1.Container) bool) {
		for i := range pod.Containers {
			if !yield(containersPath.Index(i), &pod.Containers[i]) {
				return
			}
		}
		for i := range pod.InitContainers {
			if !yield(initContainersPath.Index(i), &pod.InitContainers[i]) {
				return
			}
		}
	}
}

// maxImage is a length in bytes above which no image is valid, by the rules of images. To
// set its defaults, Kubernetes parses an image of any length by a regular expression.
const maxImage = 4096

// missingClaims returns an error for each claim of a container that the pod does not
// have, and removes these claims from the containers. Kubernetes lists all claims of the
// pod in each of its errors, which took 500 MB for a template of 128 KiB.
func missingClaims(spec *corev1.PodSpec) field.ErrorList {
	have := make(map[string]bool, len(spec.ResourceClaims))
	for i := range spec.ResourceClaims {
		have[spec.ResourceClaims[i].Name] = true
	}
	var errs field.ErrorList
	for path, c := range containers(spec) {
		before := len(errs)
		for at, claim := range c.Resources.Claims {
			if !have[claim.Name] {
				err := field.NotFound(path.Child("resources", "claims").Index(at).Child("name"), claim.Name)
				err.Detail = "must be the name of one of spec.podTemplate.spec.resourceClaims"
				errs = append(errs, err)
			}
		}
		if len(errs) > before {
			c.Resources.Claims = nil
		}
	}
	return errs
}

// asServer runs what the API server runs when a Deployment or a DaemonSet is
// created: defaults, conversion, PrepareForCreate and Validate of
// k8s.io/kubernetes/pkg/registry/apps.
func asServer(template *corev1.PodTemplateSpec) field.ErrorList {
	object := &corev1.PodTemplate{Template: *template}
	corev1defaults.SetObjectDefaults_PodTemplate(object)
	pods := &core.PodTemplateSpec{}
	if err := corev1defaults.Convert_v1_PodTemplateSpec_To_core_PodTemplateSpec(&object.Template, pods, nil); err != nil {
		return field.ErrorList{field.InternalError(root, err)}
	}
	pod.DropDisabledTemplateFields(pods, nil)
	errs := validation.ValidatePodTemplateSpec(pods, root, pod.GetValidationOptionsFromPodTemplate(pods, nil))
	return append(slices.DeleteFunc(errs, isPrivileged), forWorkload(&pods.Spec)...)
}

// isPrivileged reports whether an error is that of a privileged container. The API server's flag
// --allow-privileged decides whether they are allowed, and clusters set it; here, package
// capabilities takes it as not set.
func isPrivileged(err *field.Error) bool {
	return err.Type == field.ErrorTypeForbidden && strings.HasSuffix(err.Detail, "disallowed by cluster policy")
}

// forWorkload returns the errors of the two rules that package apps adds for pods
// of a Deployment or a DaemonSet (ValidatePodTemplateSpecForReplicaSet,
// ValidateDaemonSetSpec).
func forWorkload(spec *core.PodSpec) field.ErrorList {
	var errs field.ErrorList
	at := root.Child("spec")
	if spec.RestartPolicy != core.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(at.Child("restartPolicy"), spec.RestartPolicy, []core.RestartPolicy{core.RestartPolicyAlways}))
	}
	if spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(at.Child("activeDeadlineSeconds"), "not supported for the pods of a Deployment or a DaemonSet; remove it"))
	}
	return errs
}
