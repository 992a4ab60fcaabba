// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podvalidation validates pods with the code of Kubernetes itself, of the version in
// go.mod and with the feature gates that are on by default. It has no rules of its own, so it
// cannot differ from what a cluster of that version accepts. An API server of another version,
// or with other feature gates, may accept or refuse other children; its errors are reported in
// the object's status.
package podvalidation

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The API server's flag --allow-privileged decides whether privileged containers are
// allowed; clusters set it. The validation reads this variable of the process.
func init() { capabilities.Setup(true, 0) }

// podTemplate is the path of the pod template in each kind.
var podTemplate = field.NewPath("spec", "podTemplate")

// ReservedField is a field of the main container that has a field of its own in the object.
type ReservedField struct {
	// Field is the name of the container's field in JSON.
	Field string
	// Instead is the path of the object's field, such as spec.image.
	Instead string
	// Either is true if the container's field may be set in the pod template as long as the
	// object's field is not.
	Either bool
}

// MainContainer is the main container as an object's own fields, those outside of its pod
// template, define it.
type MainContainer struct {
	// Container has an empty name if the name is not known yet.
	Container corev1.Container
	// ServicePorts are the ports that Container.Ports are made of (modelv1.ContainerPorts).
	ServicePorts []modelv1.Port
	// Reserved are the fields of Container that have a field of their own in the object.
	Reserved []ReservedField
	// Volumes, which the main container mounts, InitContainers and
	// TerminationGracePeriodSeconds are those of the pod that the object's own fields define.
	Volumes                       []rules.OwnVolume
	InitContainers                []corev1.Container
	TerminationGracePeriodSeconds *int64
}

// Validate returns the errors that the API server would return for a Deployment or a
// DaemonSet with these pods: those of the template, with the object's own fields merged
// into its main container. Each error has the path of the field in the object, in the
// template or outside of it. An error of an object's own field is omitted if known has an
// error of that field.
//
// A nil template has no errors, because the rules of the object's own fields are
// complete. Validate changes the template, because it sets the defaults of the API
// server; it does not change main.
func Validate(template *corev1.PodTemplateSpec, main *MainContainer, known field.ErrorList) field.ErrorList {
	if template == nil {
		return nil
	}
	p := pathsOf(&template.Spec, main, known)
	p.indexes = main.mergeInto(&template.Spec)
	cutImages(&template.Spec)
	var out field.ErrorList
	for _, err := range append(missingClaims(&template.Spec), validateAsServer(template)...) {
		if p.relocate(err) {
			out = append(out, err)
		}
	}
	// Kubernetes iterates over maps. Errors are sorted, so that they are the same for the same object.
	slices.SortStableFunc(out, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Detail, b.Detail))
	})
	return out
}

// maxImage is a length in bytes above which no image is valid, by the rules of images. To
// set its defaults, Kubernetes parses an image of any length by a regular expression.
const maxImage = 4096

func cutImages(spec *corev1.PodSpec) {
	for _, list := range [...][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			list[i].Image = list[i].Image[:min(len(list[i].Image), maxImage)]
		}
	}
}

// mergeInto merges the main container into the pod, as the controller's strategic merge
// does, and adds it if the template does not have it. It returns the indexes of the main
// container; a duplicate is refused by Kubernetes.
func (main *MainContainer) mergeInto(spec *corev1.PodSpec) (indexes []int) {
	main.addVolumes(spec)
	main.addInitContainers(spec)
	spec.TerminationGracePeriodSeconds = cmp.Or(spec.TerminationGracePeriodSeconds, main.TerminationGracePeriodSeconds)
	// The controller applies no other service account under the deprecated name.
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	// The controller does not send an empty list to the API server.
	if spec.Resources != nil && len(spec.Resources.Claims) == 0 {
		spec.Resources.Claims = nil
	}
	for i := range spec.Containers {
		if c := &spec.Containers[i]; main.Container.Name != "" && c.Name == main.Container.Name {
			indexes = append(indexes, i)
			from := main.Container.DeepCopy()
			for _, reserved := range main.Reserved {
				if !reserved.Either || !reserved.In(c) {
					fill(c, from, reserved.Field)
				}
			}
			main.addMounts(c)
		}
	}
	if len(indexes) > 0 {
		return indexes
	}
	c := main.Container.DeepCopy()
	if c.Name == "" {
		c.Name = placeholder
	}
	main.addMounts(c)
	spec.Containers = append(spec.Containers, *c)
	return []int{len(spec.Containers) - 1}
}

// placeholder is the name of a main container that has no name yet, because the API
// server generates the object's name after admission.
const placeholder = "00000000000000000000000000000000000000000000000000000000000"

// addMounts adds the mounts of the volumes that the object's own fields define to the main
// container.
func (main *MainContainer) addMounts(c *corev1.Container) {
	for i := range main.Volumes {
		addMount(c, main.Volumes[i].Mount)
	}
}

// addMount adds a mount to a container. The operator's own rules refuse one of the same path in
// the template.
func addMount(c *corev1.Container, mount corev1.VolumeMount) {
	here := func(m corev1.VolumeMount) bool { return m.MountPath == mount.MountPath }
	if !slices.ContainsFunc(c.VolumeMounts, here) {
		c.VolumeMounts = append(c.VolumeMounts, mount)
	}
}

// addVolumes adds the volumes that the object's own fields define. The operator's own rules
// refuse one of the same name in the template.
func (main *MainContainer) addVolumes(spec *corev1.PodSpec) {
	for i := range main.Volumes {
		volume := &main.Volumes[i].Volume
		named := func(v corev1.Volume) bool { return v.Name == volume.Name }
		if !slices.ContainsFunc(spec.Volumes, named) {
			spec.Volumes = append(spec.Volumes, *volume.DeepCopy())
		}
	}
}

// addInitContainers adds the init containers that the object's own fields define. What the
// template has of one of them is merged into it; the operator's own rules say what that may be.
func (main *MainContainer) addInitContainers(spec *corev1.PodSpec) {
	for i := range main.InitContainers {
		c := main.InitContainers[i].DeepCopy()
		at := slices.IndexFunc(spec.InitContainers, func(in corev1.Container) bool { return in.Name == c.Name })
		if at < 0 {
			spec.InitContainers = append(spec.InitContainers, *c)
			continue
		}
		mergeInit(&spec.InitContainers[at], c)
	}
}

// mergeInit merges an init container into what the template has of it: its environment
// variables, mounts, resources and security context.
func mergeInit(c, from *corev1.Container) {
	for _, name := range [...]string{"image", "imagePullPolicy", "command", "args", "envFrom"} {
		fill(c, from, name)
	}
	for i := range from.VolumeMounts {
		addMount(c, from.VolumeMounts[i])
	}
	c.Resources.Limits = withOthers(c.Resources.Limits, from.Resources.Limits)
	c.Resources.Requests = withOthers(c.Resources.Requests, from.Resources.Requests)
	c.SecurityContext = cmp.Or(c.SecurityContext, from.SecurityContext)
}

func withOthers(list, others corev1.ResourceList) corev1.ResourceList {
	for name, amount := range others {
		if _, ok := list[name]; ok {
			continue
		}
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = amount
	}
	return list
}

// missingClaims returns an error for each claim of a container that the pod does not
// have, and removes these claims from the containers. Kubernetes lists all claims of the
// pod in each of its errors, which took 500 MB for a template of 128 KiB.
func missingClaims(spec *corev1.PodSpec) field.ErrorList {
	have := make(map[string]bool, len(spec.ResourceClaims))
	for i := range spec.ResourceClaims {
		have[spec.ResourceClaims[i].Name] = true
	}
	var errs field.ErrorList
	at := podTemplate.Child("spec")
	for i := range spec.Containers {
		errs = append(errs, missingIn(at.Child("containers"), i, &spec.Containers[i].Resources, have)...)
	}
	for i := range spec.InitContainers {
		errs = append(errs, missingIn(at.Child("initContainers"), i, &spec.InitContainers[i].Resources, have)...)
	}
	return errs
}

func missingIn(list *field.Path, index int, r *corev1.ResourceRequirements, have map[string]bool) field.ErrorList {
	var errs field.ErrorList
	for i, claim := range r.Claims {
		if !have[claim.Name] {
			err := field.NotFound(list.Index(index).Child("resources", "claims").Index(i).Child("name"), claim.Name)
			err.Detail = "must be the name of one of spec.podTemplate.spec.resourceClaims"
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		r.Claims = nil
	}
	return errs
}

// validateAsServer runs what the API server runs when a Deployment or a DaemonSet is
// created: defaults, conversion, PrepareForCreate and Validate of
// k8s.io/kubernetes/pkg/registry/apps.
func validateAsServer(template *corev1.PodTemplateSpec) field.ErrorList {
	object := &corev1.PodTemplate{Template: *template}
	corev1defaults.SetObjectDefaults_PodTemplate(object)
	pods := &core.PodTemplateSpec{}
	if err := corev1defaults.Convert_v1_PodTemplateSpec_To_core_PodTemplateSpec(&object.Template, pods, nil); err != nil {
		return field.ErrorList{field.InternalError(podTemplate, err)}
	}
	pod.DropDisabledTemplateFields(pods, nil)
	errs := validation.ValidatePodTemplateSpec(pods, podTemplate, pod.GetValidationOptionsFromPodTemplate(pods, nil))
	return append(errs, validateForWorkload(&pods.Spec)...)
}

// validateForWorkload returns the errors of the two rules that package apps adds for pods
// of a Deployment or a DaemonSet (ValidatePodTemplateSpecForReplicaSet,
// ValidateDaemonSetSpec).
func validateForWorkload(spec *core.PodSpec) field.ErrorList {
	var errs field.ErrorList
	at := podTemplate.Child("spec")
	if spec.RestartPolicy != core.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(at.Child("restartPolicy"), spec.RestartPolicy, []core.RestartPolicy{core.RestartPolicyAlways}))
	}
	if spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(at.Child("activeDeadlineSeconds"), "not supported for the pods of a Deployment or a DaemonSet; remove it"))
	}
	return errs
}
