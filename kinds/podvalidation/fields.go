// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podvalidation

import corev1 "k8s.io/api/core/v1"

// In reports whether a container has a field for which Either is true. An empty value is none.
func (f ReservedField) In(c *corev1.Container) bool {
	switch f.Field {
	case "command":
		return len(c.Command) > 0
	case "args":
		return len(c.Args) > 0
	case "imagePullPolicy":
		return c.ImagePullPolicy != ""
	case "envFrom":
		return len(c.EnvFrom) > 0
	}
	return false
}

// fill sets a field of a container to that of another container.
func fill(c, from *corev1.Container, name string) {
	switch name {
	case "image":
		c.Image = from.Image
	case "imagePullPolicy":
		c.ImagePullPolicy = from.ImagePullPolicy
	case "command":
		c.Command = from.Command
	case "args":
		c.Args = from.Args
	case "resources":
		c.Resources = from.Resources
	case "ports":
		c.Ports = from.Ports
	case "env":
		c.Env = from.Env
	case "envFrom":
		c.EnvFrom = from.EnvFrom
	}
	fillProbe(c, from, name)
}

func fillProbe(c, from *corev1.Container, name string) {
	switch name {
	case "readinessProbe":
		c.ReadinessProbe = from.ReadinessProbe
	case "livenessProbe":
		c.LivenessProbe = from.LivenessProbe
	case "startupProbe":
		c.StartupProbe = from.StartupProbe
	}
}
