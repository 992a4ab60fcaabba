// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// keys refuses lists with a repeated key that Kubernetes accepts: the API server creates a child
// with such a list, and refuses every later server-side apply of it.
func keys(template *corev1.PodTemplateSpec) field.ErrorList {
	meta, path, pod := root.Child("metadata"), root.Child("spec"), &template.Spec
	errs := unique(meta.Child("finalizers"), "", template.Finalizers, func(name *string) string { return *name })
	errs = append(errs, unique(meta.Child("ownerReferences"), "uid", template.OwnerReferences, func(o *metav1.OwnerReference) types.UID { return o.UID })...)
	errs = append(errs, unique(path.Child("hostAliases"), "ip", pod.HostAliases, func(a *corev1.HostAlias) string { return a.IP })...)
	errs = append(errs, unique(path.Child("imagePullSecrets"), "name", pod.ImagePullSecrets, func(s *corev1.LocalObjectReference) string { return s.Name })...)
	for at, c := range containers(pod) {
		errs = append(errs, containerKeys(at, c)...)
	}
	return errs
}

func containerKeys(path *field.Path, c *corev1.Container) field.ErrorList {
	type port struct {
		number   int32
		protocol corev1.Protocol
	}
	errs := unique(path.Child("ports"), "containerPort", c.Ports, func(p *corev1.ContainerPort) port {
		return port{p.ContainerPort, cmp.Or(p.Protocol, corev1.ProtocolTCP)}
	})
	for i := range errs {
		errs[i].BadValue = errs[i].BadValue.(port).number
	}
	for i := range c.VolumeMounts {
		errs = append(errs, unique(path.Child("volumeMounts").Index(i).Child("bindMountOptions"), "", c.VolumeMounts[i].BindMountOptions,
			func(option *string) string { return *option })...)
	}
	errs = append(errs, unique(path.Child("env"), "name", c.Env, func(v *corev1.EnvVar) string { return v.Name })...)
	return append(errs, unique(path.Child("resources", "claims"), "name", c.Resources.Claims, func(c *corev1.ResourceClaim) string { return c.Name })...)
}

// unique refuses items with the key of an earlier item. name is the field of an item that has
// the key, "" if it is the item itself.
func unique[T any, K comparable](path *field.Path, name string, list []T, key func(*T) K) field.ErrorList {
	if len(list) < 2 {
		return nil
	}
	var errs field.ErrorList
	seen := make(map[K]bool, len(list))
	for i := range list {
		k := key(&list[i])
		if seen[k] {
			at := path.Index(i)
			if name != "" {
				at = at.Child(name)
			}
			errs = append(errs, field.Duplicate(at, k))
		}
		seen[k] = true
	}
	return errs
}
