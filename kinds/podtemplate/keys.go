// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// podKeys refuses lists with a repeated key, although Kubernetes accepts them: the API
// server creates a child with such a list, and refuses every later server-side apply of it.
func podKeys(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	errs := rules.Unique(path.Child("hostAliases"), "ip", spec.HostAliases, func(a *corev1.HostAlias) string { return a.IP })
	// Here an empty name is a key like any other.
	for _, i := range rules.Duplicates(spec.ImagePullSecrets, func(s *corev1.LocalObjectReference) string { return s.Name }) {
		errs = append(errs, field.Duplicate(path.Child("imagePullSecrets").Index(i).Child("name"), spec.ImagePullSecrets[i].Name))
	}
	return errs
}

// metaKeys is podKeys for the metadata of the template.
func metaKeys(path *field.Path, meta *metav1.ObjectMeta) field.ErrorList {
	var errs field.ErrorList
	for _, i := range rules.Duplicates(meta.Finalizers, func(name *string) string { return *name }) {
		errs = append(errs, field.Duplicate(path.Child("finalizers").Index(i), meta.Finalizers[i]))
	}
	for _, i := range rules.Duplicates(meta.OwnerReferences, func(o *metav1.OwnerReference) types.UID { return o.UID }) {
		errs = append(errs, field.Duplicate(path.Child("ownerReferences").Index(i).Child("uid"), meta.OwnerReferences[i].UID))
	}
	return errs
}

// containerKeys is podKeys for a container.
func containerKeys(path *field.Path, c *corev1.Container) field.ErrorList {
	var errs field.ErrorList
	for _, i := range rules.Duplicates(c.Ports, keyOfPort) {
		errs = append(errs, field.Duplicate(path.Child("ports").Index(i).Child("containerPort"), c.Ports[i].ContainerPort))
	}
	for i := range c.VolumeMounts {
		options := c.VolumeMounts[i].BindMountOptions
		for _, at := range rules.Duplicates(options, func(option *string) string { return *option }) {
			errs = append(errs, field.Duplicate(path.Child("volumeMounts").Index(i).Child("bindMountOptions").Index(at), options[at]))
		}
	}
	errs = append(errs, rules.UniqueEnv(path.Child("env"), c.Env)...)
	return append(errs, rules.UniqueClaims(path.Child("resources"), c.Resources.Claims)...)
}

type portKey struct {
	number   int32
	protocol corev1.Protocol
}

// keyOfPort returns the keys of a container's port in server-side apply.
func keyOfPort(p *corev1.ContainerPort) portKey {
	return portKey{p.ContainerPort, cmp.Or(p.Protocol, corev1.ProtocolTCP)}
}
