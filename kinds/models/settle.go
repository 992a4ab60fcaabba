// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Settle completes a pod with the models, into which a pod template was merged. The container that
// fetches runs before every other one, and what it fetches and how is not the template's to
// change. Where the pod runs as root, so does it; otherwise it can write to a claim, whose volume
// mostly belongs to root.
func (p *Pod) Settle(pod *corev1.PodSpec) {
	at := slices.IndexFunc(pod.InitContainers, func(c corev1.Container) bool { return c.Name == Container })
	if p.Fetch == nil || at < 0 {
		return
	}
	c, fetch := pod.InitContainers[at], p.Fetch
	c.Image, c.ImagePullPolicy, c.Command, c.Args, c.EnvFrom = fetch.Image, fetch.ImagePullPolicy, fetch.Command, fetch.Args, fetch.EnvFrom
	switch {
	case !runsAsRoot(pod.SecurityContext):
		if slices.ContainsFunc(p.Volumes, func(v rules.OwnVolume) bool {
			claim := v.Volume.PersistentVolumeClaim
			return claim != nil && !claim.ReadOnly
		}) {
			pod.SecurityContext = withGroup(pod.SecurityContext)
		}
	case c.SecurityContext != nil && c.SecurityContext.RunAsUser == nil:
		c.SecurityContext.RunAsNonRoot = nil
	}
	pod.InitContainers = slices.Insert(slices.Delete(pod.InitContainers, at, at+1), 0, c)
}

func runsAsRoot(context *corev1.PodSecurityContext) bool {
	return context != nil && context.RunAsUser != nil && *context.RunAsUser == 0
}

// withGroup returns the security context with fsGroup, that of the image's user if there is none.
// The kubelet changes the group of a volume once, and not with each pod.
func withGroup(context *corev1.PodSecurityContext) *corev1.PodSecurityContext {
	out := ptr.Deref(context, corev1.PodSecurityContext{})
	if out.FSGroup == nil {
		out.FSGroup, out.FSGroupChangePolicy = new(imageGroup), new(corev1.FSGroupChangeOnRootMismatch)
	}
	return &out
}
