// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/api"
)

// Main is what the rules of a pod template need to know of the main container.
type Main struct {
	// Name of the container. Empty if it is not known yet.
	Name string
	// Ports that the container declares, outside of the template.
	Ports []corev1.ContainerPort
	// Reserved are its fields that have a field of their own in the object.
	Reserved []Reserved
	// AppName and Instance are the pods' api.LabelName and api.LabelInstance.
	AppName, Instance string
}

// Reserved is a field of the main container that is written elsewhere.
type Reserved struct {
	// Field of the container, as JSON has it.
	Field string
	// Instead is where to write it, such as spec.image.
	Instead string
}

// Template judges a pod template for what will be merged over the generated one. A
// nil template is not judged.
func Template(template *corev1.PodTemplateSpec, main Main) field.ErrorList {
	if template == nil {
		return nil
	}
	meta := podTemplate.Child("metadata")
	errs := templateMeta(meta, &template.ObjectMeta)
	errs = append(errs, labels(meta.Child("labels"), template.Labels, main)...)
	errs = append(errs, annotations(meta.Child("annotations"), template.Annotations)...)
	spec := podTemplate.Child("spec")
	errs = append(errs, podSpec(spec, &template.Spec)...)
	errs = append(errs, containers(spec, &template.Spec, main)...)
	return append(errs, volumes(spec.Child("volumes"), template.Spec.Volumes)...)
}

// templateMeta refuses what a pod template's metadata can hold, but no Deployment
// hands on to its pods.
func templateMeta(path *field.Path, meta *metav1.ObjectMeta) field.ErrorList {
	var errs field.ErrorList
	for _, f := range [...]struct {
		name string
		set  bool
	}{
		{"name", meta.Name != ""},
		{"generateName", meta.GenerateName != ""},
		{"namespace", meta.Namespace != ""},
		{"selfLink", meta.SelfLink != ""}, //nolint:staticcheck // Deprecated, and still a field that a person may write.
		{"uid", meta.UID != ""},
		{"resourceVersion", meta.ResourceVersion != ""},
		{"generation", meta.Generation != 0},
		{"creationTimestamp", !meta.CreationTimestamp.IsZero()},
		{"deletionTimestamp", meta.DeletionTimestamp != nil},
		{"deletionGracePeriodSeconds", meta.DeletionGracePeriodSeconds != nil},
		{"ownerReferences", len(meta.OwnerReferences) > 0},
		{"finalizers", len(meta.Finalizers) > 0},
		{"managedFields", len(meta.ManagedFields) > 0},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name), "has no effect on pods, only labels and annotations have: remove it"))
		}
	}
	return errs
}

func labels(path *field.Path, written map[string]string, main Main) field.ErrorList {
	ours := map[string]string{api.LabelName: main.AppName, api.LabelInstance: main.Instance, api.LabelManagedBy: api.ManagedBy}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(written)) {
		value := written[key]
		want, own := ours[key]
		switch {
		case own && value != want:
			errs = append(errs, Ambiguous(field.Invalid(path.Key(key), value,
				"the operator sets this label, and selectors depend on it: remove it")))
		case len(validation.IsQualifiedName(key)) > 0:
			errs = append(errs, field.Invalid(path.Key(key), key, strings.Join(validation.IsQualifiedName(key), "; ")))
		case len(validation.IsValidLabelValue(value)) > 0:
			errs = append(errs, field.Invalid(path.Key(key), value, strings.Join(validation.IsValidLabelValue(value), "; ")))
		}
	}
	return errs
}

func annotations(path *field.Path, written map[string]string) field.ErrorList {
	const most = 256 << 10 // Bytes, all keys and values together.
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(written)) {
		size += len(key) + len(written[key])
		// Kubernetes takes the prefix of an annotation in upper case as well.
		if broken := validation.IsQualifiedName(strings.ToLower(key)); len(broken) > 0 {
			errs = append(errs, field.Invalid(path.Key(key), key, strings.Join(broken, "; ")))
		}
	}
	if size > most {
		errs = append(errs, field.TooLong(path, "", most))
	}
	return errs
}

// podSpec refuses what a Deployment's pods cannot have, and lists in which a key is
// there twice: the API server creates a child with such a list, and answers every later
// server-side apply of it with an error.
func podSpec(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	if spec.RestartPolicy != "" && spec.RestartPolicy != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("restartPolicy"), spec.RestartPolicy,
			[]corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("activeDeadlineSeconds"), "pods that are kept running have no deadline: remove it"))
	}
	if len(spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ephemeralContainers"), "only a running pod takes them: use kubectl debug"))
	}
	errs = append(errs, unique(path.Child("resourceClaims"), "name", spec.ResourceClaims, claimName)...)
	errs = append(errs, unique(path.Child("hostAliases"), "ip", spec.HostAliases, func(a *corev1.HostAlias) string { return a.IP })...)
	return append(errs, unique(path.Child("imagePullSecrets"), "name", spec.ImagePullSecrets,
		func(s *corev1.LocalObjectReference) string { return s.Name })...)
}
