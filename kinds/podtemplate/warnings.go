// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Warnings returns warnings on what in spec.podTemplate is valid, but ignored or likely
// to be a mistake.
func (p *Pods) Warnings() []string {
	template, _ := Decode(p.Template)
	if template == nil {
		return nil
	}
	out := imageWarnings(template)
	out = append(out, metaWarnings(&template.ObjectMeta)...)
	if template.Spec.DeprecatedServiceAccount != "" && template.Spec.ServiceAccountName == "" {
		out = append(out, root.Child("spec", "serviceAccount").String()+": deprecated and ignored; use serviceAccountName")
	}
	if _, ok := template.Annotations[api.AnnotationRestartedAt]; ok {
		out = append(out, root.Child("metadata", "annotations").Key(api.AnnotationRestartedAt).String()+
			": ignored; use kubectl rollout restart or an Eru")
	}
	return out
}

// metaWarnings returns warnings on metadata that a Deployment or a DaemonSet does not
// copy to its pods.
func metaWarnings(meta *metav1.ObjectMeta) []string {
	var out []string
	for _, f := range [...]struct {
		name string
		set  bool
	}{
		{"name", meta.Name != ""},
		{"generateName", meta.GenerateName != ""},
		{"namespace", meta.Namespace != ""},
		{"selfLink", meta.SelfLink != ""}, //nolint:staticcheck // Deprecated, and still a field that a client may set.
		{"uid", meta.UID != ""},
		{"resourceVersion", meta.ResourceVersion != ""},
		{"generation", meta.Generation != 0},
		{"creationTimestamp", !meta.CreationTimestamp.IsZero()},
		{"deletionTimestamp", meta.DeletionTimestamp != nil},
		{"deletionGracePeriodSeconds", meta.DeletionGracePeriodSeconds != nil},
		{"ownerReferences", len(meta.OwnerReferences) > 0},
		{"managedFields", len(meta.ManagedFields) > 0},
	} {
		if f.set {
			out = append(out, root.Child("metadata", f.name).String()+": ignored; only labels and annotations are copied to the pods")
		}
	}
	if len(meta.Finalizers) > 0 {
		out = append(out, root.Child("metadata", "finalizers").String()+": deleted pods remain until all finalizers are removed")
	}
	return out
}

// imageWarnings returns rules.ImageWarning for each container of a template.
func imageWarnings(template *corev1.PodTemplateSpec) []string {
	var out []string
	warn := func(list string, containers []corev1.Container) {
		for i := range containers {
			path := root.Child("spec", list).Index(i).Child("image")
			if sentence := rules.ImageWarning(path, containers[i].Image, unset(&containers[i], pullPolicy)); sentence != "" {
				out = append(out, sentence)
			}
		}
	}
	warn("containers", template.Spec.Containers)
	warn("initContainers", template.Spec.InitContainers)
	return out
}

const pullPolicy = "imagePullPolicy"

// unset returns the name of the container's imagePullPolicy, "" if it is set.
func unset(c *corev1.Container, name string) string {
	if c.ImagePullPolicy != "" {
		return ""
	}
	return name
}

// ImageWarning returns rules.ImageWarning for spec.image, the image of the main container.
func (p *Pods) ImageWarning() string {
	image := p.Container.Image
	if rules.ImageWarning(imagePath, image, "") == "" {
		return "" // So that the pod template is decoded only if it matters.
	}
	template, _ := Decode(p.Template)
	return rules.ImageWarning(imagePath, image, p.unsetPolicy(template))
}

// unsetPolicy returns the path of the main container's imagePullPolicy, "" if it is set. In an
// object that has no field for it, it is in the pod template, which may be nil.
func (p *Pods) unsetPolicy(template *corev1.PodTemplateSpec) string {
	if template == nil {
		template = &corev1.PodTemplateSpec{}
	}
	containers, c := template.Spec.Containers, p.Container
	at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == p.Container.Name })
	if at < 0 {
		at = len(containers)
	} else if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = containers[at].ImagePullPolicy
	}
	for _, reserved := range p.Reserved {
		if reserved.Field == pullPolicy {
			return unset(&c, reserved.Instead)
		}
	}
	return unset(&c, root.Child("spec", "containers").Index(at).Child(pullPolicy).String())
}
